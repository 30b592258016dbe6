"""Text to token ids for the index, without torch: the ids that the model's own side gives."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from repo_index.errors import BrokenTokenizer


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids of a text and where they lie in it. ids: int32 [n]; starts: int32 [n], the
    character at which each begins; borders: bool [n], whether it begins a piece of the
    pre-tokenizer."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    borders: NDArray[np.bool_]


class TextTokenizer:
    """A ``tokenizer.json`` read for code: nothing is added, and user text that looks like a special
    token is encoded as the characters that it is."""

    def __init__(self, definition: str) -> None:
        """``definition``: content of a ``tokenizer.json``. Raises BrokenTokenizer."""
        try:
            parsed = json.loads(definition)
            made = Tokenizer.from_str(json.dumps(_for_plain_text(parsed)))
        except Exception as error:  # the library raises plain Exception
            raise BrokenTokenizer(
                f"the tokenizer cannot be read ({error}); fetch the model again"
            ) from error
        made.encode_special_tokens = True
        size = max(made.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self._use(made, hashlib.sha256(definition.encode()).hexdigest(), size)

    def _use(self, tokenizer: Tokenizer, sha256: str, vocabulary_size: int) -> None:
        self._tokenizer: Any = tokenizer
        self.sha256, self.vocabulary_size = sha256, vocabulary_size
        self.splits = tokenizer.pre_tokenizer is not None
        """Whether texts are cut into pieces that are encoded each for itself."""

    @classmethod
    def sharing(cls, tokenizer: Tokenizer, sha256: str, vocabulary_size: int) -> TextTokenizer:
        """One that was read for plain text before, from a ``tokenizer.json`` with this hash."""
        made = cls.__new__(cls)
        made._use(tokenizer, sha256, vocabulary_size)
        return made

    @classmethod
    def from_file(cls, path: Path) -> TextTokenizer:
        """Read a ``tokenizer.json``, or that of a model folder. Raises BrokenTokenizer."""
        path = path / "tokenizer.json" if path.is_dir() else path
        try:
            return cls(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenTokenizer(f"{path} cannot be read ({error})") from error

    def encode(self, texts: list[str]) -> list[NDArray[np.int32]]:
        """Token ids of every text. The library uses all cores, and other threads run meanwhile."""
        encodings = self._tokenizer.encode_batch_fast(
            [well_formed(text) for text in texts], add_special_tokens=False
        )
        return [np.array(encoding.ids, np.int32) for encoding in encodings]

    def encode_with_places(self, text: str) -> Encoding:
        """Token ids of one text and where they lie in it."""
        encoding = self._tokenizer.encode(well_formed(text), add_special_tokens=False)
        count = len(encoding.ids)
        words = np.array([-1 if word is None else word for word in encoding.word_ids], np.int32)
        borders = np.ones(count, np.bool_)
        borders[1:] = words[1:] != words[:-1]
        starts = np.fromiter((start for start, _ in encoding.offsets), np.int32, count)
        return Encoding(np.array(encoding.ids, np.int32), starts, borders)


def well_formed(text: str) -> str:
    """``text`` with lone surrogates, which no encoding has, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def _for_plain_text(definition: dict[str, Any]) -> dict[str, Any]:
    changed = dict(definition, truncation=None, padding=None)
    # Many models do not mark their control tokens as special; runs of white space and tags are
    # ordinary vocabulary.
    changed["added_tokens"] = [
        dict(token, special=_is_control(token)) for token in definition.get("added_tokens") or []
    ]
    for step in ("normalizer", "pre_tokenizer"):
        changed[step] = _without_added_space(definition.get(step))
    return changed


_CONTROL_NAMES = re.compile(
    r"<\|.*\|>|<｜.*｜>|<unused\d+>|<(?:pad|mask|2mass)>|\[@BOS@\]"
    r"|<fim[-_]\w+>|<\[fim-\w+\]>|\u2581?<(?:PRE|SUF|MID|EOT)>|\[(?:PREFIX|SUFFIX|MIDDLE)\]",
    re.DOTALL,
)


def _is_control(token: dict[str, Any]) -> bool:
    """Whether an added token is neither white space, nor a letter alone, nor a tag."""
    name = token["content"]
    if not name.strip() or (len(name) == 1 and name.isalpha()):
        return False
    return bool(token.get("special")) or _CONTROL_NAMES.fullmatch(name) is not None


def _without_added_space(step: Any) -> Any:
    """A step of the tokenizer without the space that it would put before a text."""
    if not isinstance(step, dict):
        return step
    kind = step.get("type")
    if kind == "Prepend":
        return None
    if kind == "Metaspace":
        fields = {name: value for name, value in step.items() if name != "add_prefix_space"}
        return dict(fields, prepend_scheme="never")
    if kind == "ByteLevel":
        return dict(step, add_prefix_space=False)
    for name in ("normalizers", "pretokenizers"):
        if name in step:
            steps = [_without_added_space(inner) for inner in step[name]]
            return dict(step, **{name: [inner for inner in steps if inner is not None]})
    return step
