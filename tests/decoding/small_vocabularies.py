"""Small vocabularies as the metadata of a GGUF file."""

from __future__ import annotations

from typing import Any

from text_cases import data_beside

DATA = data_beside(__file__)

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
LETTERS = [
    chr(byte) if byte in PRINTABLE else chr(256 + byte - sum(p < byte for p in PRINTABLE))
    for byte in range(256)
]
"""The printable stand-ins of the 256 bytes in byte-level vocabularies."""
MERGES = ["Ġ Ġ", "ĠĠ ĠĠ", "h e", "l l", "he ll", "hell o", "Ġ hello", "1 2", "d e", "de f"]
CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>"]
BYTE_LEVEL_TOKENS = [*CONTROLS, *LETTERS, *(merge.replace(" ", "") for merge in MERGES), "<tool>"]

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def byte_level(**changed: Any) -> dict[str, Any]:
    """A byte-level vocabulary; ``changed`` without the prefix of the keys."""
    count = len(BYTE_LEVEL_TOKENS)
    keys: dict[str, Any] = {
        "model": "gpt2",
        "pre": "qwen2",
        "tokens": BYTE_LEVEL_TOKENS,
        "token_type": [CONTROL] * len(CONTROLS)
        + [NORMAL] * (count - len(CONTROLS) - 1)
        + [USER_DEFINED],
        "merges": MERGES,
        "eos_token_id": 2,
        **changed,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}


PIECES = DATA["PIECES"]


def sentencepiece(**changed: Any) -> dict[str, Any]:
    """A SentencePiece vocabulary with byte fallback."""
    size = len(PIECES)
    keys: dict[str, Any] = {
        "model": "llama",
        "tokens": ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES],
        "token_type": [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * size,
        "scores": [0.0] * 259 + list(PIECES.values()),
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        **changed,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in keys.items() if value is not None}
