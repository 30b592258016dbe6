"""The tokens of a GGUF file and what is special about some of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.gguf.control_names import is_control_name
from accel.files.gguf.header import shown
from accel.files.gguf.metadata import AGAIN, OTHER_MODEL, Metadata, StringArray

_PREFIX = "tokenizer.ggml."
EDIT_LINES_KEY = "tokenizer.redraft.edit_lines"
"""Our own key: see ``Vocabulary.edit_lines``."""
_MOST_EDIT_LINES = 100_000

_ENDS = frozenset(json.loads(Path(__file__).with_name("end_tokens.json").read_text("utf-8")))
"""Control tokens that end a completion beside the end that a file names: models write them after a
turn, a document or a file."""

_FIM_KEYS = {
    "prefix": ("fim_pre", "prefix"),
    "suffix": ("fim_suf", "suffix"),
    "middle": ("fim_mid", "middle"),
}

_PHI_3 = re.compile("phi-?3", re.IGNORECASE)
"""Models of which llama.cpp knows by their name that control tokens take blanks."""


class TokenType(IntEnum):
    """Purpose of a token. Source: ``tokenizer.ggml.token_type`` of the GGUF specification."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


NAMED = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN)
"""Types of tokens that stand for their whole name and are never put together."""


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Steps of a kind of vocabulary before and around its merges."""

    patterns: tuple[str, ...]
    """They cut a text into the pieces that no token crosses, in the syntax of the tokenizers
    library; each cuts the pieces that the ones before it did not cut."""
    ignores_merges: bool = False
    """A piece that is a token becomes that token, even against the merges."""
    begins: bool = False
    """A text begins with the beginning token unless the file says otherwise."""


PRE_TOKENIZERS = {
    name: PreTokenizer(
        tuple(row["patterns"]), row.get("ignores_merges", False), row.get("begins", False)
    )
    for row in json.loads(Path(__file__).with_name("pre_tokenizers.json").read_text("utf-8"))
    for name in row["names"]
}
"""By the name in ``tokenizer.ggml.pre``, as the models' own ``tokenizer.json`` files have them."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by id, and how a text is cut into them."""

    kind: str
    """``gpt2`` for byte-level, ``llama`` for SentencePiece."""
    pre_tokenizer: PreTokenizer | None
    """Of byte-level vocabularies."""
    tokens: list[str]
    types: NDArray[np.int32]
    merges: StringArray
    """Of byte-level vocabularies: two tokens with a space between."""
    scores: NDArray[np.float32]
    """Of SentencePiece vocabularies: the higher, the earlier a token is made."""
    beginning: int | None
    """The token before a text, if ``adds_beginning``."""
    adds_beginning: bool | None
    """None where the file does not say."""
    adds_space: bool
    """True if SentencePiece puts a space before a text."""
    unknown: int | None
    end: int | None
    """The end that the file names."""
    end_tokens: frozenset[int]
    """All tokens that end a text."""
    chat_template: str | None
    fim_tokens: dict[str, int]
    """The file's tokens for ``prefix``, ``suffix`` and ``middle`` of a hole, unchecked."""
    edit_lines: int | None = None
    """The number of lines above and below the code to edit in the model's training."""
    takes_blanks: bool = False
    """True if control tokens take the white space after them."""
    problems: tuple[str, ...] = ()
    """The parts that were passed over, in words."""

    def text_of(self, token: int | None) -> str:
        """Return the text of a token, nothing for None."""
        return "" if token is None else self.tokens[token]


def read_vocabulary(metadata: Metadata) -> Vocabulary:
    """Return the vocabulary of a file. Raises BrokenModel or UnsupportedModel."""
    kind = metadata.text(f"{_PREFIX}model")
    if kind not in ("gpt2", "llama"):
        what = "no vocabulary" if kind in (None, "none", "no_vocab") else f"a {shown(kind)} one"
        raise UnsupportedModel(
            f"{metadata.path} has {what} where a byte-level (gpt2) or SentencePiece (llama) "
            "vocabulary is needed",
            OTHER_MODEL,
        )
    tokens = metadata.strings(f"{_PREFIX}tokens").decoded()
    if not tokens:
        raise BrokenModel(f"{metadata.path} has no tokens", AGAIN)
    count = len(tokens)

    def listed(key: str, default: float) -> NDArray[Any]:
        values = metadata.numbers(f"{_PREFIX}{key}")
        if values is None:
            return np.full(count, default)
        if len(values) < count:
            raise BrokenModel(f"{metadata.path} has {len(values)} {key} for {count} tokens", AGAIN)
        return values[:count]

    problems: list[str] = []

    def token(key: str) -> int | None:
        value = metadata.value(f"{_PREFIX}{key}_token_id")
        if isinstance(value, int) and not isinstance(value, bool) and not 0 <= value < count:
            problems.append(
                f"{metadata.path} names token {value} as its {key} token and has {count} tokens: "
                "that is passed over"
            )
            return None
        return metadata.integer(f"{_PREFIX}{key}_token_id", 0, count - 1)

    types = listed("token_type", TokenType.NORMAL).astype(np.int32)
    ends = {token(key) for key in ("eos", "eot", "eom")}
    # Qwen has an ordinary token "</s>", and Gemma one that was added: both are HTML.
    ends |= {
        number
        for number in np.flatnonzero(np.isin(types, NAMED)).tolist()
        if tokens[number] in _ENDS
        and (types[number] != TokenType.USER_DEFINED or is_control_name(tokens[number]))
    }
    is_sentencepiece = kind == "llama"
    merges = metadata.strings(f"{_PREFIX}merges")
    if not merges.count and not is_sentencepiece:
        raise BrokenModel(
            f"{metadata.path} has a byte-level vocabulary without merges, so that no text can be "
            "cut into its tokens",
            AGAIN,
        )
    return Vocabulary(
        kind=kind,
        pre_tokenizer=_pre_tokenizer(metadata) if kind == "gpt2" else None,
        tokens=tokens,
        types=types,
        merges=merges,
        scores=listed("scores", 0.0).astype(np.float32),
        beginning=token("bos"),
        adds_beginning=metadata.flag(f"{_PREFIX}add_bos_token"),
        adds_space=is_sentencepiece and metadata.flag(f"{_PREFIX}add_space_prefix") is not False,
        unknown=token("unknown"),
        end=token("eos"),
        end_tokens=frozenset(end for end in ends if end is not None),
        chat_template=metadata.text("tokenizer.chat_template"),
        fim_tokens=_fim_tokens(metadata),
        edit_lines=metadata.integer(EDIT_LINES_KEY, 0, _MOST_EDIT_LINES),
        takes_blanks=takes_blanks(metadata),
        problems=tuple(dict.fromkeys(problems)),
    )


def takes_blanks(metadata: Metadata) -> bool:
    """See ``Vocabulary.takes_blanks``."""
    name = metadata.value("general.name")
    return isinstance(name, str) and _PHI_3.search(name) is not None


def _fim_tokens(metadata: Metadata) -> dict[str, int]:
    """Newer files have the first name of a key, older ones the second."""
    tokens = {}
    for part_name, names in _FIM_KEYS.items():
        values = (metadata.value(f"{_PREFIX}{name}_token_id") for name in names)
        ids = [value for value in values if isinstance(value, int) and value >= 0]
        if ids:
            tokens[part_name] = ids[0]
    return tokens


def _pre_tokenizer(metadata: Metadata) -> PreTokenizer:
    name = metadata.text(f"{_PREFIX}pre") or "default"
    if name not in PRE_TOKENIZERS:
        raise UnsupportedModel(
            f"{metadata.path} cuts text in a way ({shown(name)}) that is not known here",
            OTHER_MODEL,
        )
    return PRE_TOKENIZERS[name]
