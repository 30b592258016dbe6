"""What a model in a real engine process answers, how sure it is, and what is shown by gate."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lsp_server.editor.next_edits.answers import AnsweredWindow
from lsp_server.editor.next_edits.model import ConfidentChanges, NextEditModel, WindowRequest
from lsp_server.editor.next_edits.prompts import holds_marks
from lsp_server.editor.next_edits.window_hunks import logprob_of, starts_in_answer
from lsp_server.editor.next_edits.windows import Window
from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.settings import NextEditSettings
from lsp_server.tasks.next_edits.formats import NextEditFormat
from lsp_server.text.text_edit import TextEdit
from tests.benchmarks.next_edits.commits import CommitStep
from tests.benchmarks.next_edits.windows import wanted_window, window_of

GATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


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


class RecordingModel(NextEditModel):
    """Keeps every change of the last answer, whatever the rules and the gate say: old and new text,
    its joint probability with those before it, and the rule against it. The answer itself, too."""

    changes: list[tuple[str, str, float, str]]
    result: JobResult | None

    def _all(
        self, request: WindowRequest, spans: Sequence[Span], result: JobResult, model: str
    ) -> ConfidentChanges:
        self.result = result
        return super()._all(request, spans, result, model)

    def _confident(
        self,
        request: WindowRequest,
        hunks: Sequence[TextEdit[int]],
        made: AnsweredWindow,
        spans: Sequence[Span],
    ) -> ConfidentChanges:
        self.changes, logprob = [], 0.0
        for one, start in zip(hunks, starts_in_answer(hunks), strict=True):
            logprob += logprob_of(start, one, made, spans)
            old = request.window.text[one.start : one.end]
            self.changes.append((old, one.text, math.exp(logprob), request.refusal(one)))
        return super()._confident(request, hunks, made, spans)


async def asked_answers(
    args: argparse.Namespace, fmt: NextEditFormat, steps: Sequence[CommitStep]
) -> list[Answered]:
    """Every window asked of a real engine process, one after another."""
    engine = await ready_engine(args)
    settings = NextEditSettings(gate="off", format=fmt.name)
    model = RecordingModel("bench", lambda: settings, lambda: engine)
    found: list[Answered] = []
    started = time.perf_counter()
    for step in random.Random(args.seed).sample(steps, len(steps)):
        request = request_of(step, fmt, args.most_tokens)
        if request is None:
            continue
        if time.perf_counter() - started > args.seconds:
            break
        found.append(await _answer(model, step, request))
        if args.out:
            with args.out.open("a") as lines:
                lines.write(f"{json.dumps(found[-1].as_json())}\n")
    await engine.close()
    return found


async def ready_engine(args: argparse.Namespace) -> EngineClient:
    """An engine process with the model loaded. Raises SystemExit where it cannot be."""
    engine = EngineClient(
        EngineOptions(path=args.model, threads=args.threads, common=False), lambda: None
    )
    await engine.start()
    while engine.status.state != "ready":
        if engine.status.state == "failed":
            raise SystemExit(engine.status.message)
        await asyncio.sleep(0.05)
    return engine


def request_of(step: CommitStep, fmt: NextEditFormat, most_tokens: int = 0) -> WindowRequest | None:
    """What is asked in a step; None where nothing is. ``most_tokens``: as in ``window_at``."""
    window = window_of(step, fmt, most_tokens)
    if window is None or holds_marks(window, fmt):
        return None
    return WindowRequest(window, fmt, step.document, list(step.edits), "")


async def _answer(model: RecordingModel, step: CommitStep, request: WindowRequest) -> Answered:
    changes: list[tuple[str, str, float]] = []
    started, first_s = time.perf_counter(), 0.0

    def on_found(confident: ConfidentChanges) -> None:
        nonlocal first_s
        first_s = first_s or time.perf_counter() - started
        between = request.document.between
        changes.extend(
            (between(change.start, change.end), change.text, likely) for change, likely in confident
        )

    model.reason, model.changes, model.result = "", [], None
    await model.ask(request, on_found)
    result = model.result
    text = result.text if result is not None else ""
    return Answered(
        step=step,
        window=request.window,
        wanted=wanted_window(step, request.window),
        text=text if text.endswith("\n") else f"{text}\n",
        changes=changes,
        all_changes=model.changes,
        reason=model.reason,
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
