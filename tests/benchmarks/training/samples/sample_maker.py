"""Draws training samples of every kind from files and commits, in the prompts that editors send."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from accel.draft_tree import TokenArray
from accel.text.other_files import NO_FILES, OtherFiles, Snippet, laid_out
from accel.text.prompts import around_hole, back_off, edit_prompt
from accel.text.special_tokens import file_format_of, fim_format_of
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.samples.code import CodeFile, CommitChange, lines_of
from tests.benchmarks.training.samples.commit_edits import InstructedEdit, commit_edit
from tests.benchmarks.training.samples.holes import HoleMaker
from tests.benchmarks.training.samples.next_edits import NextEdit, next_edit
from tests.benchmarks.training.samples.sample import AROUND_WEIGHT, Sample, answered

LONGEST_MIDDLE = 160
LEAST_AROUND = 64
OTHER_FILES_SHARE = 0.35
SUFFIX_SHARES = (0.05, 0.15, 0.25, 0.25, 0.35, 0.5)
PATH_SHARE = 0.6
OPEN_END_SHARE = 0.4
"""Selections without the end of their last line, as editors send them."""
CHARACTERS_A_TOKEN = 8
MOST_TRIES = 1000
MADE_EDITS_SHARE, MADE_HISTORIES_SHARE = 0.5, 0.4
"""Edits and next edits that are made up, beside those of commits."""


@dataclass(frozen=True)
class Shares:
    """How often each kind of sample is drawn."""

    fill: float = 0.6
    edit: float = 0.25
    next_edit: float = 0.15


@dataclass(frozen=True)
class MadeUp:
    """Makers of edits and next edits beside those of commits, each of a Python file; None where a
    file gives none."""

    edit: Callable[[CodeFile, random.Random], InstructedEdit | None]
    next_edit: Callable[[CodeFile, random.Random], NextEdit | None]


@dataclass
class _OtherFile:
    path: str
    text: str


class SampleMaker:
    """Draws samples; the same seed draws the same. Kinds that the code does not allow are left out:
    edits without commits, holes without the tokens for them."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        files: Sequence[CodeFile],
        commits: Sequence[CommitChange],
        ends: frozenset[int],
        shares: Shares,
        seed: int,
        made_up: MadeUp,
    ) -> None:
        """``ends``: the model's own end tokens. Raises TrainingError where nothing can be drawn."""
        self._tokenizer = tokenizer
        self._files = files
        self._commits = commits
        self._rng = random.Random(seed)
        self._fim = fim_format_of(tokenizer)
        self._files_format = file_format_of(tokenizer)
        self._made_up = made_up
        self._python = [file for file in files if file.language == "python"]
        self._by_folder: dict[tuple[str, str], list[CodeFile]] = defaultdict(list)
        for file in files:
            self._by_folder[_folder_of(file)].append(file)
        self._text_end = _end_of_text(tokenizer, ends)
        self._chat_end = _end_of_chat(tokenizer, ends)
        has_changes = bool(commits or (made_up and self._python))
        has_edits = tokenizer.chat_template is not None and has_changes
        has_next = has_changes and self._files_format is not None
        makers = [
            (self.fill, shares.fill if self._fim is not None and files else 0.0),
            (self.edit, shares.edit if has_edits else 0.0),
            (self.next_edit, shares.next_edit if has_next else 0.0),
        ]
        self._makers = [maker for maker, share in makers if share > 0]
        self._shares = [share for _, share in makers if share > 0]
        if not self._makers:
            raise TrainingError(
                "no sample can be drawn: the model has no tokens for holes and no chat template, "
                "or the folders hold no code"
            )

    def draw(self, length: int) -> Sample:
        """A sample of at most ``length`` tokens. Raises TrainingError where none is found."""
        for _ in range(MOST_TRIES):
            maker = self._rng.choices(self._makers, self._shares)[0]
            sample = maker(length)
            if sample is not None and len(sample.tokens) <= length:
                return sample
        raise TrainingError(f"the code gives no sample of {length} tokens; give more folders")

    def fill(self, length: int) -> Sample | None:
        """A hole and what stands in it, a third of them with other files in front."""
        rng, fim = self._rng, self._fim
        assert fim is not None
        is_python = self._python and rng.random() < 0.6
        file = rng.choice(self._python if is_python else self._files)
        span = HoleMaker(file.text).draw(rng)
        if span is None:
            return None
        reach = CHARACTERS_A_TOKEN * length
        prefix, typed = back_off(self._tokenizer, file.text[max(0, span[0] - reach) : span[0]])
        middle = self._tokenizer.encode(typed + file.text[slice(*span)])
        others = self._other_files(file, length) if rng.random() < OTHER_FILES_SHARE else NO_FILES
        given = len(self._tokenizer.opening) + len(others.before) + len(others.inside)
        available = length - given - len(middle) - 4
        if len(middle) > LONGEST_MIDDLE or available < LEAST_AROUND:
            return None
        before, after = self._around(prefix, file.text[span[1] : span[1] + reach], available)
        prompt = np.concatenate(
            [
                self._tokenizer.opening,
                others.before,
                around_hole(
                    fim,
                    np.concatenate([others.inside, before]).astype(np.int32),
                    after,
                ),
            ]
        ).astype(np.int32)
        special = self._tokenizer.special_tokens | fim.ends
        weights = [
            0.0 if token in special or place < given else AROUND_WEIGHT
            for place, token in enumerate(prompt.tolist())
        ]
        answer = [*middle.tolist(), self._text_end]
        return Sample([*prompt.tolist(), *answer], [*weights, *[1.0] * len(answer)])

    def _around(self, prefix: str, suffix: str, available: int) -> tuple[TokenArray, TokenArray]:
        before, after = self._tokenizer.encode(prefix), self._tokenizer.encode(suffix)
        wanted = min(len(after), int(available * self._rng.choice(SUFFIX_SHARES)))
        before = before[max(0, len(before) - (available - wanted)) :]
        return before, after[: available - len(before)]

    def _other_files(self, file: CodeFile, length: int) -> OtherFiles:
        rng, near = self._rng, self._by_folder[_folder_of(file)]
        chosen = [one for one in rng.sample(near, min(3, len(near))) if one is not file]
        snippets: list[Snippet] = []
        for other in chosen[: rng.choice([1, 1, 2, 3])]:
            lines = lines_of(other.text)
            start = rng.randrange(max(1, len(lines) - 12))
            part = "".join(lines[start : start + rng.randint(6, 30)])
            snippets.append(_OtherFile(other.path, part))
        budget = int(length * rng.uniform(0.15, 0.45))
        return laid_out(self._tokenizer, snippets, file.path, file.repository, budget)

    def edit(self, length: int) -> Sample | None:
        """An edit by instruction, of a commit or made up, in the model's chat template."""
        if self._python and self._is_made_up(MADE_EDITS_SHARE):
            edit = self._made_up.edit(self._rng.choice(self._python), self._rng)
        else:
            edit = commit_edit(self._rng.choice(self._commits), self._rng)
        if edit is None:
            return None
        selection, answer = edit.selection, edit.answer
        if self._rng.random() < OPEN_END_SHARE:
            selection, answer = selection.rstrip("\n"), answer.rstrip("\n")
        if not selection.strip() or not answer.strip() or selection == answer:
            return None
        prompt = edit_prompt(
            self._tokenizer,
            edit.instruction,
            selection,
            before=edit.before,
            after=edit.after,
            language=edit.language,
            path=edit.path if self._rng.random() < PATH_SHARE else "",
            budget=1 << 20,
        )
        written = [
            *self._tokenizer.encode(answer).tolist(),
            *prompt.closing_tokens.tolist(),
            self._chat_end,
        ]
        if len(prompt.tokens) + len(written) > length:
            return None
        return answered(prompt.tokens.tolist(), self._encode(selection), written)

    def _is_made_up(self, share: float) -> bool:
        return not self._commits or self._rng.random() < share

    def next_edit(self, length: int) -> Sample | None:
        """What a person changes next in a window, behind what was changed just now."""
        assert self._files_format is not None
        if self._python and self._is_made_up(MADE_HISTORIES_SHARE):
            edit = self._made_up.next_edit(self._rng.choice(self._python), self._rng)
        else:
            edit = next_edit(self._rng.choice(self._commits), self._rng)
        if edit is None:
            return None
        mark = self._tokenizer.special(self._files_format.mark)
        marks = self._encode(self._files_format.mark) if mark is None else [mark]
        prompt = [token for part in edit.parts for token in [*marks, *self._encode(part)]]
        answer = [*self._encode(edit.updated), self._text_end]
        if len(prompt) + len(answer) > length:
            return None
        return answered(prompt, self._encode(edit.current), answer)

    def _encode(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text)]


def _folder_of(file: CodeFile) -> tuple[str, str]:
    return file.repository, str(PurePosixPath(file.path).parent)


def _end_of_text(tokenizer: Tokenizer, ends: frozenset[int]) -> int:
    found = tokenizer.special("<|endoftext|>")
    return found if found is not None else min(ends)


def _end_of_chat(tokenizer: Tokenizer, ends: frozenset[int]) -> int:
    """The end token that the chat template names."""
    template = tokenizer.chat_template or ""
    named = [token for token in sorted(ends) if tokenizer.bytes_of(token).decode() in template]
    return named[-1] if named else max(ends)
