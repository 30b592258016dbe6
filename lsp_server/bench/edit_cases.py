"""Edits in token ids, how much of them is reused, and edits made by kind of instruction."""

from __future__ import annotations

import ast
import difflib
import random
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from accel.draft_tree import TokenArray
from lsp_server.bench.cases import EditCase, read_repository
from lsp_server.errors import BenchError

if TYPE_CHECKING:
    from accel.text.prompts import Prompt
    from accel.text.tokenizer import Tokenizer

BINS = ((0.5, "reuse < .5"), (0.8, "reuse .5 to .8"), (0.95, "reuse .8 to .95"))
LAST_BIN = "reuse > .95"
END_NAMES = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "</s>", "<|end▁of▁sentence|>", "<eos>")
PROMPT_BUDGET = 1 << 20
"""A replay has no model whose context could be too short."""
SHORTEST, LONGEST = 80, 1600
"""Characters of the functions that edits are made of."""


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
    from accel.training.edits import EXACT_KINDS, make_edit

    functions = _functions(repositories)
    rng = random.Random(seed)
    cases: list[EditCase] = []
    for kind in EXACT_KINDS:
        rng.shuffle(functions)
        found = 0
        for number, source in enumerate(functions):
            if found == per_kind:
                break
            edit = make_edit(source, kind, seed + number)
            if edit is not None and edit.before != edit.after:
                found += 1
                name = f"{kind}-{found}"
                cases.append(
                    EditCase(
                        name, kind, edit.instruction, edit.instruction, edit.before, edit.after
                    )
                )
    return cases


def _functions(repositories: Path) -> list[str]:
    files = sorted(repositories.glob("*.jsonl")) if repositories.is_dir() else [repositories]
    if not files:
        raise BenchError(f"{repositories} holds no .jsonl of a repository; give another to --kinds")
    found = [
        function
        for file in files
        for text in read_repository(file).values()
        for function in _functions_of(text)
    ]
    if not found:
        raise BenchError(f"{repositories} holds no Python function to edit; give another folder")
    return found


def _functions_of(text: str) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    lines = text.splitlines(keepends=True)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            function = "".join(lines[first - 1 : node.end_lineno])
            if SHORTEST <= len(function) <= LONGEST:
                found.append(function)
    return found
