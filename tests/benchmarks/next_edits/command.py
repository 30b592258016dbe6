"""``next-edit``: windows of real commits, by replay and by a model.

By replay the commit's own text stands in for the model's answer: tokens per forward of the reuse
drafter beside what llama.cpp and Sweep's server draft. By a model in a real engine process: what it
answers, how sure it is, what would be shown by gate, and how long that takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accel.drafting.base import Drafter, DraftRequest
from accel.drafting.copy.drafter import CopyDrafter
from accel.text.gguf_tokenizer import tokenizer_folder
from accel.text.tokenizer import Tokenizer
from lsp_server.contract.jobs import Span
from lsp_server.contract.options import EngineOptions
from lsp_server.engine.client import EngineClient
from lsp_server.engine.next_edits.formats import FORMATS, NextEditFormat
from lsp_server.next_edits.answers import AnsweredWindow
from lsp_server.next_edits.asking import AskedWindow, Sure, WindowAsker
from lsp_server.next_edits.prompts import expected_answer, holds_marks, prompt_pieces
from lsp_server.next_edits.window_hunks import WindowHunk, logprob_of
from lsp_server.next_edits.windows import Window, shown_line, window_at
from lsp_server.settings import NextEditSettings
from tests.benchmarks.next_edits.commits import CommitStep, read_steps
from tests.benchmarks.next_edits.settled import print_settled
from tests.benchmarks.peers.ngram_simple import NgramSimpleDrafter
from tests.benchmarks.peers.prompt_lookup import PromptLookupDrafter
from tests.benchmarks.replay import replay

MOST_NODES = 256
GATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--cases", type=Path, required=True, help="commits, a JSON object a line")
    parser.add_argument("--model", required=True, help="a GGUF file; its tokenizer for the replay")
    parser.add_argument("--replay", action="store_true", help="without the model")
    parser.add_argument("--settled", action="store_true", help="what needs no model")
    parser.add_argument("--formats", default="redraft", help="names, separated by commas, or all")
    parser.add_argument("--each", type=int, default=100, help="steps of each kind at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="ask for so long at most")
    parser.add_argument("--repositories", default="", help="names, by commas; default all")
    parser.add_argument("--out", type=Path, help="every answer, a JSON object a line")


def run(args: argparse.Namespace) -> int:
    """Replay, or ask the model."""
    if args.settled:
        print_settled(args.cases)
        return 0
    wanted = args.repositories.split(",") if args.repositories else ()
    every = read_steps(args.cases, args.seed)
    steps = [one for one in every if not wanted or one.repository in wanted]
    steps = chosen_steps(steps, args.each, args.seed)
    print(Counter(step.kind for step in steps))
    names = list(FORMATS) if args.formats == "all" else args.formats.split(",")
    if args.replay:
        tokenizer = Tokenizer.from_folder(tokenizer_folder(Path(args.model)))
        for name in names:
            print_replay(FORMATS[name], steps, tokenizer)
        return 0
    for name in names:
        answers = asyncio.run(asked_answers(args, FORMATS[name], steps))
        print_answers(name, answers)
    return 0


def chosen_steps(steps: Iterable[CommitStep], each: int, seed: int) -> list[CommitStep]:
    """So many of each kind, by chance."""
    by_kind: defaultdict[str, list[CommitStep]] = defaultdict(list)
    for step in steps:
        by_kind[step.kind].append(step)
    rng = random.Random(seed)
    return [
        step
        for _, some in sorted(by_kind.items())
        for step in rng.sample(some, min(each, len(some)))
    ]


def window_of(step: CommitStep, form: NextEditFormat) -> Window | None:
    """The window that the model is asked for in a step."""
    recent = step.edits[:32]
    return window_at(
        *(step.document, step.cursor, form, step.path, recent, {step.document.uri: step.path}),
        is_typing=False,
    )


def wanted_window(step: CommitStep, window: Window) -> str | None:
    """What the window becomes by the commit; None where the next change reaches out of it."""
    now = [shown_line(line) for line in step.document.lines]
    then = [shown_line(line) for line in step.wanted.splitlines(keepends=True)]
    if now and not now[-1]:
        now.pop()
    behind = len(now) - window.first - len(window.lines)
    inside = then[window.first : len(then) - behind]
    outside = then[: window.first] == now[: window.first] and (
        then[len(then) - behind :] == now[len(now) - behind :]
    )
    return "".join(f"{line}\n" for line in inside) if outside else None


# By replay


def print_replay(form: NextEditFormat, steps: Sequence[CommitStep], tokenizer: Tokenizer) -> None:
    """Tokens per forward of each drafter over all windows."""
    makers: dict[str, Callable[[], Drafter]] = {
        "redraft": lambda: CopyDrafter(tokenizer, end=(0,)),
        "redraft, no rewriting ahead": lambda: CopyDrafter(tokenizer, end=(0,)),
        "prompt lookup of 32": lambda: PromptLookupDrafter(draft_tokens=32),
        "ngram-simple 3/8": lambda: NgramSimpleDrafter(3, 8),
        "ngram-simple 12/48": lambda: NgramSimpleDrafter(12, 48),
    }
    tokens: Counter[str] = Counter()
    forwards: Counter[str] = Counter()
    windows = 0
    for step in steps:
        window = window_of(step, form)
        wanted = wanted_window(step, window) if window is not None else None
        if window is None or wanted is None or holds_marks(window, form):
            continue
        windows += 1
        prompt = tokenizer.encode_with_controls(prompt_pieces(window, form))
        expected = expected_answer(window, form)
        answer = expected.replace(window.text, wanted) if window.text in expected else wanted
        if form.writes_ahead:
            ahead = "".join(f"{line}\n" for line in window.lines[: (window.cursor or (0, 0))[0]])
            if not wanted.startswith(ahead):
                windows -= 1
                continue
            answer = wanted.removeprefix(ahead)
        reference = np.append(tokenizer.encode(answer), np.int32(0)).astype(np.int32)
        for name, make in makers.items():
            request = DraftRequest(prompt, original=tokenizer.encode(expected))
            request.rewrites = () if "no rewriting" in name else window.changes
            statistics = replay(make(), request, reference, MOST_NODES)
            tokens[name] += statistics.tokens
            forwards[name] += statistics.forwards
    print(f"{form.name}: {windows} windows, {tokens['redraft']} tokens")
    for name in makers:
        rate = tokens[name] / max(forwards[name], 1)
        print(f"  {name}: {rate:.2f} tokens per forward, {forwards[name]} forwards")


# By a model


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model made of a step. changes: old and new text and the joint probability of each
    that the rules let pass, first those that were known before the end of the answer."""

    step: CommitStep
    window: Window
    wanted: str | None
    text: str
    changes: list[tuple[str, str, float]]
    all_changes: list[tuple[str, str, float, str]]
    reason: str
    tokens: int
    forwards: int
    seconds: float
    prefill_s: float
    first_s: float
    """From the request to the first change, or to the end where there is none."""

    @property
    def is_exact(self) -> bool:
        """Whether the whole answer is what the commit has."""
        return self.wanted is not None and self.text == self.wanted

    def shown(self, gate: float) -> bool:
        """Whether anything is shown at a gate."""
        return any(likely >= gate for _, _, likely in self.changes)

    def as_json(self) -> dict[str, Any]:
        """For a file of answers."""
        return {
            "id": self.step.id,
            "kind": self.step.kind,
            "window": self.window.text,
            "wanted": self.wanted,
            "answer": self.text,
            "changes": self.changes,
            "all": self.all_changes,
            "reason": self.reason,
            "tokens": self.tokens,
            "forwards": self.forwards,
            "seconds": self.seconds,
        }


class RecordingAsker(WindowAsker):
    """Keeps every change of the last answer, whatever the rules and the gate say: old and new text,
    its joint probability with those before it, and the rule against it."""

    changes: list[tuple[str, str, float, str]]

    def _sure(
        self,
        asked: AskedWindow,
        hunks: Sequence[WindowHunk],
        made: AnsweredWindow,
        spans: Sequence[Span],
    ) -> Sure:
        self.changes, logprob = [], 0.0
        for one in hunks:
            logprob += logprob_of(one, made, spans)
            old = asked.window.text[one.hunk.start : one.hunk.end]
            self.changes.append((old, one.hunk.text, math.exp(logprob), asked.refusal(one.hunk)))
        return super()._sure(asked, hunks, made, spans)


async def asked_answers(
    args: argparse.Namespace, form: NextEditFormat, steps: Sequence[CommitStep]
) -> list[Answered]:
    """Every window asked of a real engine process, one after another."""
    engine = EngineClient(
        EngineOptions(path=args.model, threads=args.threads, common=False), lambda: None
    )
    settings = NextEditSettings(gate="off", format=form.name)
    asker = RecordingAsker("bench", lambda: settings, lambda: engine)
    await engine.start()
    while engine.status.state != "ready":
        if engine.status.state == "failed":
            raise SystemExit(engine.status.message)
        await asyncio.sleep(0.05)
    found: list[Answered] = []
    started = time.perf_counter()
    for step in random.Random(args.seed).sample(steps, len(steps)):
        window = window_of(step, form)
        if window is None or holds_marks(window, form):
            continue
        if time.perf_counter() - started > args.seconds:
            break
        found.append(await _answer(asker, form, step, window))
        if args.out:
            with args.out.open("a") as lines:
                lines.write(f"{json.dumps(found[-1].as_json())}\n")
    await engine.close()
    return found


async def _answer(
    asker: RecordingAsker, form: NextEditFormat, step: CommitStep, window: Window
) -> Answered:
    asked = AskedWindow(window, form, step.document, list(step.edits), "")
    changes: list[tuple[str, str, float]] = []
    started, first_s = time.perf_counter(), 0.0

    def on_found(sure: Sure) -> None:
        nonlocal first_s
        first_s = first_s or time.perf_counter() - started
        changes.extend((change.old, change.new, likely) for change, likely in sure.changes)

    asker.reason, asker.changes = "", []
    asker.results.clear()
    await asker.ask(asked, on_found)
    result = asker.results[-1] if asker.results else None
    text = result.text if result is not None else ""
    return Answered(
        step=step,
        window=window,
        wanted=wanted_window(step, window),
        text=text if text.endswith("\n") else f"{text}\n",
        changes=changes,
        all_changes=asker.changes,
        reason=asker.reason,
        tokens=result.tokens if result else 0,
        forwards=result.forwards if result else 0,
        seconds=result.seconds if result else 0.0,
        prefill_s=result.prefill_seconds if result else 0.0,
        first_s=first_s,
    )


def print_answers(name: str, answers: Sequence[Answered]) -> None:
    """What came of them, by kind and by gate."""
    tokens = sum(one.tokens for one in answers)
    forwards = sum(one.forwards for one in answers)
    seconds = sum(one.seconds for one in answers)
    print(
        f"{name}: {len(answers)} windows, {tokens} tokens, {tokens / max(forwards, 1):.2f} a "
        f"forward, {tokens / max(seconds, 1e-9):.0f} a second of decoding"
    )
    for what, times in (
        ("prefill", [one.prefill_s for one in answers]),
        ("first change or end", [one.first_s for one in answers]),
    ):
        p50, p95 = np.percentile(times, [50, 95])
        print(f"  {what}: p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms")
    for kind in ("next", "moved", "nothing"):
        some = [one for one in answers if one.step.kind == kind]
        left = sum(one.text == one.window.text for one in some)
        exact = [one for one in some if one.is_exact and one.text != one.window.text]
        reasons = Counter(one.reason.split("(")[0] for one in some if not one.changes)
        print(
            f"  {kind}: {len(some)}, left as they are {left}, exact {len(exact)}; {dict(reasons)}"
        )
    nothing = [one for one in answers if one.step.kind == "nothing"]
    coming = [one for one in answers if one.step.kind != "nothing"]
    exact = [one for one in coming if one.is_exact and one.text != one.window.text]
    print("  gate: shown where something comes (exact of these), of all exact; where nothing does")
    for gate in GATES:
        shown = [one for one in coming if one.shown(gate)]
        right = [one for one in exact if one.shown(gate)]
        wrong = [one for one in nothing if one.shown(gate)]
        print(
            f"  {gate:.2f}: {len(shown)} ({len(right)}), {len(right)} of {len(exact)}; "
            f"{len(wrong)} of {len(nothing)} ({100 * len(wrong) / max(len(nothing), 1):.1f} %)"
        )
