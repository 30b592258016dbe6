"""Patterns by which each kind of byte-level vocabulary cuts a text into the pieces that no token
crosses.

The kinds are the names of ``tokenizer.ggml.pre``; the patterns are those of the models' own
``tokenizer.json`` files, in the syntax of the tokenizers library. Each pattern cuts the pieces that
the ones before it did not cut.
"""

from __future__ import annotations

from dataclasses import dataclass

_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's."""
_DIGIT = r"\p{N}"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _llama_3(digits: str, letters: str = r"\p{L}", newlines: str = r"[\r\n]*") -> str:
    """Llama 3's pattern with other digits, letters, or line breaks after signs."""
    return (
        rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?{letters}+|\p{{N}}{digits}"
        rf"| ?[^\s{letters.strip('[]')}\p{{N}}]+{newlines}|{_BLANKS}"
    )


_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _cased(endings: str, digits: str) -> str:
    """GPT-4o's pattern: a word begins where small letters turn into capitals."""
    before = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{before}{_UPPER}*{_LOWER}+{endings}|{before}{_UPPER}+{_LOWER}*{endings}"
        rf"|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_BLANKS}"
    )


_CHINESE = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_CASED_LETTERS = (
    "[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    r"[\p{Lu}\p{Ll}\p{Lt}&&[^\x{0}-\x{2af}\x{10d0}-\x{10ff}]]]"
)
"""DeepSeek's list of letters: those with case, but Georgian's small ones."""
_SIGNS = "[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]"
_ASCII_SIGNS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Steps of a kind of vocabulary before and around its merges."""

    patterns: tuple[str, ...]
    ignores_merges: bool = False
    """A piece that is a token becomes that token, even against the merges."""
    begins: bool = False
    """A text begins with the beginning token unless the file says otherwise."""


_GPT_2 = PreTokenizer((_WORDS,))
_STARCODER = PreTokenizer((_DIGIT, _WORDS))
_QWEN_2 = PreTokenizer((_llama_3(""),))
_LLAMA_3 = PreTokenizer((_llama_3("{1,3}"),), ignores_merges=True, begins=True)
_GLM_4 = PreTokenizer((_llama_3("{1,3}"),), ignores_merges=True)
_DBRX = PreTokenizer((_llama_3("{1,3}"),))
_GPT_4O = PreTokenizer((_cased(rf"{_ENDINGS}?", "{1,3}"),))
_DEEPSEEK_V3 = PreTokenizer(
    (
        r"\p{N}{1,3}",
        "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        rf"{_ASCII_SIGNS}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
        rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_BLANKS}",
    )
)

PRE_TOKENIZERS = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _WORDS, r"\p{N}+", "[0-9][0-9][0-9]")),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _WORDS, "[0-9][0-9][0-9]")),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CHINESE, _DIGIT)),
    "deepseek-llm": PreTokenizer(
        (r"[\r\n]", rf"\s?{_CASED_LETTERS}+", rf"\s?{_SIGNS}+", r"\s+$", _CHINESE, _DIGIT)
    ),
    "deepseek-v3": _DEEPSEEK_V3,
    "hunyuan-dense": _DEEPSEEK_V3,
    "seed-coder": PreTokenizer(
        (_llama_3("", newlines="").replace(r"[^\s\p{L}", r"[^\s\r\n\p{L}"),)
    ),
    "qwen35": PreTokenizer((_llama_3("", letters=r"[\p{L}\p{M}]"),)),
    "tekken": PreTokenizer((_cased("", ""),), ignores_merges=True, begins=True),
    **dict.fromkeys(
        ("gpt-2", "phi-2", "mpt", "olmo", "jais", "mellum", "exaone4", "granite-docling"), _GPT_2
    ),
    **dict.fromkeys(
        (
            "starcoder",
            "refact",
            "command-r",
            "smollm",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ),
        _STARCODER,
    ),
    **dict.fromkeys(
        ("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2"),
        _QWEN_2,
    ),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"), _LLAMA_3),
    **dict.fromkeys(("glm4",), _GLM_4),
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe"), _DBRX),
    **dict.fromkeys(("gpt-4o", "llama4"), _GPT_4O),
}
"""By the name that a file gives."""
