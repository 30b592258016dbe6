"""Text that came with halves of surrogate pairs."""


def replace_surrogates(text: str) -> str:
    """``text`` without lone surrogates, which no tokenizer takes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
