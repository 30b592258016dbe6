"""Replay of windows: the commit's own text stands in for the model's answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from accel.drafting.base import Drafter, DraftRequest
from accel.drafting.copy.drafter import CopyDrafter
from accel.text.tokenizer import Tokenizer
from lsp_server.editor.next_edits.prompts import (
    expected_answer,
    expected_rewrites,
    holds_marks,
    prompt_pieces,
)
from lsp_server.tasks.next_edits.formats import NextEditFormat
from tests.benchmarks.next_edits.commits import CommitStep
from tests.benchmarks.next_edits.windows import reference_answer, wanted_window, window_of
from tests.benchmarks.peers.ngram_simple import ngram_simple_drafter
from tests.benchmarks.peers.prompt_lookup import prompt_lookup_drafter
from tests.benchmarks.replay import replay

MOST_NODES = 256


def print_replay(fmt: NextEditFormat, steps: Sequence[CommitStep], tokenizer: Tokenizer) -> None:
    """Tokens per forward of each drafter over all windows."""
    makers: dict[str, Callable[[], Drafter]] = {
        "redraft": lambda: CopyDrafter(tokenizer, end=(0,)),
        "redraft, no rewriting ahead": lambda: CopyDrafter(tokenizer, end=(0,)),
        "prompt lookup of 32": lambda: prompt_lookup_drafter(draft_tokens=32),
        "ngram-simple 3/8": lambda: ngram_simple_drafter(3, 8),
        "ngram-simple 12/48": lambda: ngram_simple_drafter(12, 48),
    }
    tokens: Counter[str] = Counter()
    forwards: Counter[str] = Counter()
    windows = 0
    for step in steps:
        window = window_of(step, fmt)
        wanted = wanted_window(step, window) if window is not None else None
        if window is None or wanted is None or holds_marks(window, fmt):
            continue
        answer = reference_answer(fmt, window, wanted)
        if answer is None:
            continue
        windows += 1
        prompt = tokenizer.encode_with_controls(prompt_pieces(window, fmt))
        expected = expected_answer(window, fmt)
        reference = np.append(tokenizer.encode(answer), np.int32(0)).astype(np.int32)
        for name, make in makers.items():
            request = DraftRequest(prompt, original=tokenizer.encode(expected))
            rewrites = () if "no rewriting" in name else expected_rewrites(window, fmt)
            request.rewrites = tuple(rewrites)
            statistics = replay(make(), request, reference, MOST_NODES)
            tokens[name] += statistics.tokens
            forwards[name] += statistics.forwards
    print(f"{fmt.name}: {windows} windows, {tokens['redraft']} tokens")
    for name in makers:
        rate = tokens[name] / max(forwards[name], 1)
        print(f"  {name}: {rate:.2f} tokens per forward, {forwards[name]} forwards")
