"""``train copy-weights``: fit how likely each place to copy from is to be the next token.

The weights of copy rows are those of a log-linear choice between the rows that
vote and the escape "something else", fitted by maximum likelihood on edits as people made them
(commit histories of Python projects) and as instructions ask for them (``training/edits``).
Regularised, convex, a few minutes on one core.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source
from accel.drafting.base import ContinuationIndex, Continuations, DraftRequest
from accel.drafting.copy import candidates as rows_of
from accel.models.model_file import model_file
from tests.benchmarks.training.copy_votes import votes_of
from tests.benchmarks.training.errors import TrainingError

if TYPE_CHECKING:
    from accel.drafting.copy.drafter import CopyDrafter
    from accel.text.tokenizer import Tokenizer

SHORTEST, LONGEST = 200, 9_000
"""Characters of the text before an edit."""
ON_TRACK_SHARE = 0.1
"""On the track nearly every token is the next one of the original, so few of them will do."""
EARLY = 4
"""The first tokens of an answer are all taken: there are only few of them."""
REGULARISATION = 2e-6
REPOSITORY_BONUS = 0.5
"""A repository's own code is likelier than common code; the histories have no datastore to tell."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One edit."""

    instruction: str
    before: str
    after: str


@dataclass(slots=True)
class Votes:
    """Choices of the next token. features: int64 [rows, 5]; right: bool [rows]; choice: int64
    [rows], number of the choice; escapes: int64 [choices]; weights: float64 [choices]."""

    features: torch.Tensor
    right: torch.Tensor
    choice: torch.Tensor
    escapes: torch.Tensor
    weights: torch.Tensor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``tests.benchmarks train copy-weights``."""
    parser.add_argument(
        "--history",
        type=Path,
        action="append",
        required=True,
        metavar="DIR",
        help="git repository of a Python project; may be repeated",
    )
    parser.add_argument("--out", type=Path, required=True, help="file of the weights (.npy)")
    parser.add_argument("--model", metavar="DIR", help="whose tokenizer; else the chosen model's")
    parser.add_argument("--per-history", type=int, default=120, help="edits of each history")
    parser.add_argument("--made", type=int, default=300, help="edits made by kind of instruction")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Collect edits, fit, write. Raises TrainingError."""
    from accel.drafting.copy.drafter import CopyDrafter
    from accel.models.hub import find_model_path

    tokenizer = model_file(find_model_path(args.model)).tokenizer
    rng = random.Random(args.seed)
    pairs = [
        pair for folder in args.history for pair in history_pairs(folder, args.per_history, rng)
    ]
    if not pairs:
        raise TrainingError("the histories hold no edit of Python; give other repositories")
    pairs += made_pairs(args.made, args.seed)
    drafter = CopyDrafter(tokenizer, _end(tokenizer))
    weights = fit(collect(drafter, tokenizer, pairs, None, rng))
    drafter.weights = weights
    looked_up = collect(drafter, tokenizer, pairs[::3], _library_index(tokenizer), rng)
    weights = fit(looked_up, start=weights, only=_of_kind(rows_of.COMMON))
    weights[_of_kind(rows_of.REPOSITORY)] = weights[_of_kind(rows_of.COMMON)] + REPOSITORY_BONUS
    np.save(args.out, np.round(weights, 2).astype(np.float32))
    print(f"{len(pairs)} edits; {args.out} written", flush=True)
    return 0


def history_pairs(folder: Path, count: int, rng: random.Random) -> Iterator[Pair]:
    """Edits of a history: small files, or top-level definitions that a commit changed."""
    log = _git(folder, "log", "--no-merges", "--format=%H%x09%s", "-n", "2500").splitlines()
    rng.shuffle(log)
    found = 0
    for line in log:
        commit, _, subject = line.partition("\t")
        names = _git(folder, "diff-tree", "--no-commit-id", "-r", "--diff-filter=M",
                     "--name-only", commit).splitlines()  # fmt: skip
        names = [name for name in names if name.endswith(".py")]
        if not 0 < len(names) <= 6:
            continue
        name = rng.choice(names)
        before = _git(folder, "show", f"{commit}~1:{name}")
        after = _git(folder, "show", f"{commit}:{name}")
        pairs = [(before, after)]
        if len(before) > LONGEST:
            old, new = _definitions(before), _definitions(after)
            pairs = [(old[key], new[key]) for key in old.keys() & new.keys()]
        pairs = sorted(
            pair for pair in pairs if pair[0] != pair[1] and SHORTEST < len(pair[0]) <= LONGEST
        )
        if pairs:
            yield Pair(subject, *rng.choice(pairs))
            found += 1
        if found == count:
            return


def made_pairs(count: int, seed: int) -> list[Pair]:
    """Edits by kind of instruction, of functions of the standard library."""
    from tests.benchmarks.training.edit_draft import library_edits

    return [Pair(edit.instruction, edit.before, edit.after) for edit in library_edits(count, seed)]


def collect(
    drafter: CopyDrafter,
    tokenizer: Tokenizer,
    pairs: Iterable[Pair],
    index: ContinuationIndex | None,
    rng: random.Random,
) -> Votes:
    """The votes at the tokens of every ``after``, as they would have been while it was written."""
    from accel.text.prompts import edit_prompt

    features, right, sizes, escapes, weights = [], [], [], [], []
    for pair in pairs:
        prompt = edit_prompt(tokenizer, pair.instruction, pair.before, budget=1 << 20)
        drafter.begin(DraftRequest(prompt.text, original=prompt.original_tokens, index=index))
        after = np.append(tokenizer.encode(pair.after), np.array(_end(tokenizer), np.int32))
        for place, token in enumerate(after.astype(np.int32)):
            found, tokens, escape, off_track = votes_of(drafter)
            everything = off_track > 0 or place < EARLY
            if everything or rng.random() < ON_TRACK_SHARE:
                features.append(found)
                right.append(tokens == token)
                sizes.append(len(found))
                escapes.append(escape)
                weights.append(1.0 if everything else 1 / ON_TRACK_SHARE)
            drafter.commit(DraftTree.empty(), [], np.array([token], np.int32))
    return Votes(
        torch.as_tensor(np.concatenate(features).astype(np.int64)),
        torch.as_tensor(np.concatenate(right)),
        torch.repeat_interleave(torch.arange(len(sizes)), torch.as_tensor(sizes)),
        torch.as_tensor(escapes),
        torch.as_tensor(weights, dtype=torch.float64),
    )


def fit(
    votes: Votes,
    steps: int = 150,
    *,
    start: NDArray[np.float64] | None = None,
    only: slice = slice(None),
) -> NDArray[np.float64]:
    """The weights of greatest likelihood, float64 [rows_of.WEIGHTS].

    ``only`` these are changed from ``start``: text that was looked up is fitted on top of the rest,
    so that drafting without an index is what it was.
    """
    first = np.zeros(rows_of.WEIGHTS) if start is None else start.copy()
    weights = torch.tensor(first, dtype=torch.float64, requires_grad=True)
    free = torch.zeros(rows_of.WEIGHTS, dtype=torch.float64)
    free[only] = 1
    optimizer = torch.optim.LBFGS(
        [weights], max_iter=steps, history_size=20, line_search_fn="strong_wolfe"
    )
    total = votes.weights.sum()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        likelihood = (log_likelihood(weights, votes) * votes.weights).sum() / total
        loss = REGULARISATION * (weights**2).sum() - likelihood
        loss.backward()
        assert weights.grad is not None
        weights.grad *= free
        return loss

    optimizer.step(closure)
    fitted = weights.detach().numpy().copy()
    fitted[rows_of.NOTHING_AT] = 0
    return fitted


def log_likelihood(weights: torch.Tensor, votes: Votes) -> torch.Tensor:
    """Of every choice: the rows that are right against all, or the escape where none is right."""
    held = torch.cat([weights[: rows_of.NOTHING_AT], weights.new_zeros(1)])
    strength = held[votes.features].sum(1).exp()
    escape = held[votes.escapes].exp()
    empty = torch.zeros_like(escape)
    everything = empty.index_add(0, votes.choice, strength) + escape
    right = empty.index_add(0, votes.choice, strength * votes.right)
    found = empty.index_add(0, votes.choice, votes.right.double()) > 0
    return (torch.where(found, right, escape) / everything).log()


def _of_kind(kind: int) -> slice:
    """The weights of the match lengths of one kind of row."""
    first = rows_of.MATCH_AT + kind * rows_of.MATCH_BUCKETS
    return slice(first, first + rows_of.MATCH_BUCKETS)


def _library_index(tokenizer: Tokenizer) -> ContinuationIndex:
    """The standard library as common code, looked up in the plainest way."""
    from tests.benchmarks.training.edit_draft import library_files

    return LongestSuffix([tokenizer.encode(text) for text in library_files()])


class LongestSuffix:
    """Continuations of the longest suffix that some file holds, and of the shorter ones."""

    def __init__(self, files: list[NDArray[np.int32]]) -> None:
        self._text = np.concatenate([np.append(file, np.int32(-1)) for file in files])
        self._order = np.argsort(self._text, kind="stable")
        self._sorted = self._text[self._order]

    def lookup(
        self, context: NDArray[np.int32], *, max_match: int = 16, limit: int = 64, depth: int = 16
    ) -> Continuations:
        """As ``ContinuationIndex`` says, from the last ``4096`` places of the last token."""
        token = context[-1] if len(context) else -2
        left, right = np.searchsorted(self._sorted, [token, token + 1])
        ends = self._order[left:right][-4096:]
        lengths = np.ones(len(ends), np.int32)
        alive = np.ones(len(ends), np.bool_)
        for back in range(1, min(max_match, len(context))):
            alive &= (ends >= back) & (self._text[ends - back] == context[-1 - back])
            lengths[alive] += 1
        best = np.argsort(-lengths, kind="stable")[:limit]
        rows = np.full((len(best), depth), -1, np.int32)
        for row, end in enumerate(ends[best]):
            after = self._text[end + 1 : end + 1 + depth]
            stops = np.flatnonzero(after < 0)
            after = after[: stops[0]] if len(stops) else after
            rows[row, : len(after)] = after
        return Continuations(
            rows,
            lengths[best],
            np.ones(len(best), np.float32),
            np.full(len(best), Source.COMMON, np.int8),
            np.full(len(best), -1, np.int32),
        )


def _end(tokenizer: Tokenizer) -> tuple[int, ...]:
    end = tokenizer.special("<|endoftext|>")
    return () if end is None else (end,)


def _definitions(text: str) -> dict[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    lines = text.splitlines(keepends=True)
    return {
        node.name: "".join(
            lines[
                min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1 : node.end_lineno
            ]
        )
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }


def _git(folder: Path, *words: str) -> str:
    ran = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    if ran.returncode and words[0] == "log":
        raise TrainingError(f"{folder} is no git repository; give one with a history")
    return ran.stdout.decode("utf-8", "replace")
