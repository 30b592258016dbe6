"""Edits in token ids, how much of them is reused, and edits made by kind of instruction."""

from __future__ import annotations

import difflib
import random
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from accel.draft_tree import TokenArray
from lsp_server.shared.errors import BenchError
from tests.benchmarks.cases import EditCase, read_repository

if TYPE_CHECKING:
    from accel.text.prompts import Prompt
    from accel.text.tokenizer import Tokenizer

BINS = ((0.5, "reuse < .5"), (0.8, "reuse .5 to .8"), (0.95, "reuse .8 to .95"))
LAST_BIN = "reuse > .95"
END_NAMES = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "</s>", "<|end▁of▁sentence|>", "<eos>")
PROMPT_BUDGET = 1 << 20
"""A replay has no model whose context could be too short."""


@dataclass(frozen=True, slots=True)
class TokenEdit:
    """One edit as an engine meets it. ``target`` ends with the end token, where there is one."""

    prompt: Prompt
    target: TokenArray
    reuse: float
    """Share of the target's tokens that stand in the original, in its order."""


def in_tokens(
    tokenizer: Tokenizer, case: EditCase, instruction: str, max_tokens: int | None
) -> TokenEdit:
    """The case as prompt and target; models without a format for edits get a plain one."""
    from accel.errors import UnsupportedPrompt
    from accel.text.prompts import Prompt, edit_prompt

    try:
        prompt = edit_prompt(tokenizer, instruction, case.before, budget=PROMPT_BUDGET)
    except UnsupportedPrompt:
        text = f"# Instruction: {instruction}\n# Before\n{case.before}\n# After\n"
        original = tokenizer.encode(case.before)
        prompt = Prompt(tokenizer.encode(text), frozenset(), original_tokens=original)
    answer = tokenizer.encode(case.after)
    target = np.append(answer, np.array(end_of(tokenizer), np.int32)).astype(np.int32)
    assert prompt.original_tokens is not None
    return TokenEdit(prompt, target[:max_tokens], reuse_rate(prompt.original_tokens, answer))


def end_of(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The token that ends an answer, as far as the vocabulary tells; empty without one."""
    found = (tokenizer.special(name) for name in END_NAMES)
    return next(((token,) for token in found if token is not None), ())


def reuse_rate(original: TokenArray, answer: TokenArray) -> float:
    """Share of the tokens of ``answer`` in common runs with ``original`` (the paper's RQ4)."""
    if not len(answer):
        return 1.0
    matcher = difflib.SequenceMatcher(None, original.tolist(), answer.tolist(), autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / len(answer)


def reuse_bin(rate: float) -> str:
    """Name of the bin that a reuse rate falls into."""
    return next((name for limit, name in BINS if rate < limit), LAST_BIN)


def made_edits(repositories: Path, per_kind: int, seed: int) -> list[EditCase]:
    """Edits of every kind of instruction, made from functions of repositories not trained on.

    ``repositories``: a folder with a ``.jsonl`` of ``{path, content}`` for each. ``path`` of a case
    is the kind. Raises BenchError where there is nothing to make edits of.
    """
    from tests.benchmarks.training.made_edits import ONE_ANSWER, make_edit

    functions = _functions(repositories)
    cases: list[EditCase] = []
    for kind in ONE_ANSWER:
        rng = random.Random(f"{kind} {seed}")
        tried = (make_edit(text, kind, rng) for text in rng.sample(functions, len(functions)))
        found = islice((edit for edit in tried if edit is not None), per_kind)
        for number, edit in enumerate(found, start=1):
            asked = edit.instruction
            cases.append(EditCase(f"{kind}-{number}", kind, asked, asked, edit.before, edit.after))
    return cases


def _functions(repositories: Path) -> list[str]:
    from tests.benchmarks.training.function_source import function_places

    files = sorted(repositories.glob("*.jsonl")) if repositories.is_dir() else [repositories]
    if not files:
        raise BenchError(f"{repositories} holds no .jsonl of a repository; give another to --kinds")
    found = [
        text[place.start : place.end]
        for file in files
        for text in read_repository(file).values()
        for place in function_places(text)
    ]
    if not found:
        raise BenchError(f"{repositories} holds no Python function to edit; give another folder")
    return found
