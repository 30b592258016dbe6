"""Other files in a prompt, where a model's family has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from accel.draft_tree import TokenArray
from accel.text.families import FileFormat, FilePosition
from accel.text.special_tokens import file_format_of
from accel.text.tokenizer import Tokenizer


class Snippet(Protocol):
    """Text of another file."""

    @property
    def path(self) -> str:
        """Relative to its workspace."""
        ...

    @property
    def text(self) -> str:
        """The file's text."""
        ...


_NOTHING = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """Tokens ``before`` the markers of a hole, and those ``inside``, after the prefix marker.
    int32 both. ``stop_texts``: text that begins another file, where no token does."""

    before: TokenArray
    inside: TokenArray
    stop_texts: tuple[str, ...]


NO_FILES = OtherFiles(_NOTHING, _NOTHING, ())


def laid_out(
    tokenizer: Tokenizer, snippets: Sequence[Snippet], path: str, repository: str, budget: int
) -> OtherFiles:
    """As many of the snippets as fit into ``budget`` tokens, the first before others, and the path
    of this file. Nothing where none fits, or where the model knows no way."""
    file_format = file_format_of(tokenizer)
    if file_format is None:
        return NO_FILES
    texts: list[TokenArray] = []
    for snippet in snippets:
        text = snippet.text if snippet.text.endswith("\n") else f"{snippet.text}\n"
        if len(text) > budget * tokenizer.longest_token:
            break
        is_first = file_format.position is FilePosition.INSIDE and not texts
        tokens = _file(
            tokenizer, file_format, f"{snippet.path}\n{text}{file_format.between}", is_first
        )
        budget -= len(tokens)
        if budget < 0:
            break
        texts.append(tokens)
    if not texts:
        return NO_FILES
    name = _repository(tokenizer, file_format, repository)
    stops = () if tokenizer.special(file_format.mark) is not None else (f"\n{file_format.mark}",)
    if file_format.position is FilePosition.PATH_INSIDE:
        # The mark of this file comes before the markers, its path after them.
        before = np.concatenate([name, *texts, _file(tokenizer, file_format, "")])
        return OtherFiles(before, tokenizer.encode_beginning(f"{path}\n"), stops)
    prompt = np.concatenate([name, *texts, _file(tokenizer, file_format, f"{path}\n")])
    if file_format.position is FilePosition.INSIDE:
        return OtherFiles(_NOTHING, prompt, stops)
    return OtherFiles(prompt, _NOTHING, stops)


def _file(
    tokenizer: Tokenizer, file_format: FileFormat, rest: str, is_first: bool = False
) -> TokenArray:
    """``is_first``: whether no text comes before, but a marker."""
    mark = tokenizer.special(file_format.mark)
    if mark is None:
        text = file_format.mark + rest
        return tokenizer.encode_beginning(text) if is_first else tokenizer.encode(text)
    return np.concatenate([np.array([mark], np.int32), tokenizer.encode_beginning(rest)])


def _repository(tokenizer: Tokenizer, file_format: FileFormat, name: str) -> TokenArray:
    mark = tokenizer.special(file_format.repository) if file_format.repository and name else None
    if mark is None:
        return _NOTHING
    text = tokenizer.encode_beginning(name + file_format.behind_name)
    return np.concatenate([np.array([mark], np.int32), text])
