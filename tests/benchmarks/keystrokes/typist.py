"""A person who types through the real server, and what suggestions cost meanwhile.

The rest of a function is typed again, key by key, as at 40 to 120 words a minute. A request is
*along* when what was shown fits what is being typed (no model time), *cold* the first at a place,
*fresh* when it is waited for however long it takes. Times are taken at the client.
"""

from __future__ import annotations

import argparse
import ast
import random
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.keystrokes.editor_process import EditorProcess, ServerFailed
from tests.benchmarks.keystrokes.open_document import OpenDocument

CHARACTERS_PER_WORD = 5
PAUSE_CHANCE = 0.03
PAUSE_S = (0.6, 1.5)
PATIENCE_S = 30.0
WAITED = 80
WAIT_EVERY = 6
"""Keys typed between two suggestions that are waited for."""


def add_typing_arguments(parser: argparse.ArgumentParser) -> None:
    """How much is typed, and how fast."""
    parser.add_argument("--keys", type=int, default=400, help="keys to type")
    parser.add_argument("--places", type=int, default=8, help="places to type at")
    parser.add_argument("--words", default="40:120", metavar="A:B", help="words a minute")
    parser.add_argument("--seed", type=int, default=0, help="of pauses and speeds")


@dataclass(frozen=True, slots=True)
class TimedRequest:
    """One request that was answered."""

    msg_id: int
    took_ms: float
    text: str
    next_text: str
    along: bool


@dataclass(slots=True)
class TypingTally:
    """What happened. ``typed``: answered before the next key; ``cold`` and ``waited`` were waited
    for, the first at a place and after some keys."""

    requests: int = 0
    along: int = 0
    typed: list[TimedRequest] = field(default_factory=list)
    cold: list[TimedRequest] = field(default_factory=list)
    waited: list[TimedRequest] = field(default_factory=list)
    late: int = 0
    """Requests that the next key came before."""
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TypedPassage:
    """Where typing begins, and what is typed."""

    before: str
    typed: str
    after: str


def typing_places(text: str, count: int) -> list[TypedPassage]:
    """Bodies of functions, evenly spread over the file."""
    lines = text.splitlines(keepends=True)
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and len(node.body) > 2:
            middle = node.body[len(node.body) // 2]
            end = node.end_lineno or middle.lineno
            before, typed = lines[: middle.lineno - 1], "".join(lines[middle.lineno - 1 : end])
            found.append(
                TypedPassage("".join(before), typed.rstrip("\n"), "\n" + "".join(lines[end:]))
            )
    step = max(1.0, len(found) / max(1, count))
    return [found[int(number * step)] for number in range(min(count, len(found)))]


class Typist:
    """Types into one document, asks after every key, and notes what came.

    ``uri`` is the file's own, so that the index does not hold what is being typed; ``words`` are
    the slowest and the fastest words a minute, as ``A:B``.
    """

    def __init__(self, client: EditorProcess, uri: str, rng: random.Random, words: str) -> None:
        self.tally = TypingTally()
        self._client = client
        self._uri = uri
        self._rng = rng
        slow, _, fast = words.partition(":")
        self._words = float(slow), float(fast or slow)

    def type_file(self, places: list[TypedPassage], keys: int) -> None:
        """Type so many keys in all, then wait for suggestions, spread over the places."""
        for place in places:
            self.type_at(place, keys // len(places))
        for place in places:
            self.wait_at(place, WAITED // len(places))

    def type_at(self, place: TypedPassage, keys: int) -> None:
        """Type at one place, as fast as this person types today."""
        document = self.open(place.before + place.after)
        speed = self._rng.uniform(*self._words) * CHARACTERS_PER_WORD / 60
        start = self._indent(document, place)
        shown, cold = "", True
        for key in range(start, min(len(place.typed), start + keys)):
            along = bool(shown) and shown.startswith(place.typed[key])
            document.insert(len(place.before) + key, place.typed[key])
            due = time.monotonic() + self._delay(speed)
            new = self._ask(document, place, key + 1, None if cold else due, along)
            shown = new if new is not None else (shown[1:] if along else "")
            cold = False
            time.sleep(max(0.0, due - time.monotonic()))
        document.close()

    def wait_at(self, place: TypedPassage, count: int) -> None:
        """Ask after every few keys and wait for the answer, with the KV cache of the last one."""
        document = self.open(place.before + place.after)
        start = self._indent(document, place)
        for number in range(count + 1):
            key = start + number * WAIT_EVERY
            if key + WAIT_EVERY > len(place.typed):
                break
            document.insert(len(place.before) + key, place.typed[key : key + WAIT_EVERY])
            started = time.monotonic()
            msg_id, future = document.ask(len(place.before) + key + WAIT_EVERY)
            if (text := self._answer(future, PATIENCE_S)) is not None and number:
                took_ms = (time.monotonic() - started) * 1000
                self.tally.waited.append(TimedRequest(msg_id, took_ms, text, "", False))
        document.close()

    def open(self, text: str) -> OpenDocument:
        """Open the document with this text."""
        return OpenDocument(self._client, self._uri, text)

    def cancel(self, msg_id: int) -> None:
        """Cancel a request."""
        self._client.notify("$/cancelRequest", {"id": msg_id})

    def _indent(self, document: OpenDocument, place: TypedPassage) -> int:
        indent = len(place.typed) - len(place.typed.lstrip(" "))
        document.insert(len(place.before), place.typed[:indent])
        return indent

    def _delay(self, speed: float) -> float:
        if self._rng.random() < PAUSE_CHANCE:
            return self._rng.uniform(*PAUSE_S)
        return self._rng.uniform(0.5, 1.5) / speed

    def _ask(
        self,
        document: OpenDocument,
        place: TypedPassage,
        typed: int,
        due: float | None,
        along: bool,
    ) -> str | None:
        """What is shown before the next key is ``due``; None when nothing came in time."""
        started = time.monotonic()
        msg_id, future = document.ask(len(place.before) + typed)
        self.tally.requests += 1
        self.tally.along += along
        # A first answer is waited for: nobody types on a place that just opened.
        patience = PATIENCE_S if due is None else max(0.001, due - started)
        try:
            text = self._answer(future, patience)
        except NotInTime:
            self.cancel(msg_id)
            self.tally.late += 1
            return None
        if text is not None:
            took_ms = (time.monotonic() - started) * 1000
            group = self.tally.cold if due is None else self.tally.typed
            group.append(TimedRequest(msg_id, took_ms, text, place.typed[typed:], along))
        return text

    def _answer(self, future: Future[Any], patience_s: float) -> str | None:
        try:
            items = (future.result(patience_s) or {}).get("items", [])
        except ServerFailed as error:
            self.tally.errors.append(str(error))
            return None
        return str(items[0]["insertText"]) if items else ""


def typing_figures(tally: TypingTally, measured: dict[str, Any]) -> dict[str, Any]:
    """Figures of one person's typing. Shares are of 1, times in milliseconds."""
    server_ms = {one["id"]: 1000 * one["seconds"] for one in measured["answers"]}
    known = {one["id"] for one in measured["answers"] if one["withoutModel"]}
    without_model = [one for one in tally.typed if one.msg_id in known and one.text]
    right = [one for one in without_model if one.along and matches(one.text, one.next_text)]
    fresh = [one for one in tally.waited if one.msg_id not in known]
    late, busy = measured["loopLate"], measured["loopBusy"]
    return {
        "requests": tally.requests,
        "along": tally.along,
        "answered_without_model": round(len(right) / tally.along, 3) if tally.along else 0.0,
        "without_model": len(without_model),
        "without_model_ms_p50": _took(without_model, 50),
        "without_model_ms_p95": _took(without_model, 95),
        "without_model_server_ms_p95": percentile(
            [server_ms[one.msg_id] for one in without_model], 95
        ),
        "fresh": len(fresh),
        "fresh_ms_p50": _took(fresh, 50),
        "fresh_ms_p95": _took(fresh, 95),
        "cold": len(tally.cold),
        "cold_ms_p50": _took(tally.cold, 50),
        "cold_ms_p95": _took(tally.cold, 95),
        "too_late_for_the_next_key": tally.late,
        "did_change_ms_p95": round(1000 * measured["didChange"]["p95"], 2),
        "loop_blocked_ms_p999": round(1000 * late["p999"], 2),
        "loop_blocked_ms_max": round(1000 * late["max"], 2),
        "loop_busy_ms_p999": round(1000 * busy["p999"], 2),
        "loop_busy_ms_max": round(1000 * busy["max"], 2),
        "errors": len(tally.errors),
        "first_errors": tally.errors[:3],
    }


def matches(text: str, next_text: str) -> bool:
    """Whether a suggestion begins with what is typed next: its next character that shows."""
    word = next_text[: max(1, len(next_text) - len(next_text.lstrip(" ")) + 1)]
    return bool(next_text) and text.startswith(word)


def _took(requests: list[TimedRequest], percent: float) -> float | None:
    return percentile([one.took_ms for one in requests], percent)


def percentile(values: list[float], percent: float) -> float | None:
    """The value that so many percent do not exceed; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))], 3)
