"""``redraft bench typing``: a person types a real file through the real front and daemon.

At several places of the file the rest of a function is taken out and typed again, key by key, with
pauses as at 40 to 120 words a minute. After every key the editor tells the change, cancels its last
request and asks anew, as VS Code does. A request is *along* when what was shown before it fits what
is being typed; those should cost no model time. The first request at a place has no KV cache and is
counted apart (*cold*).
"""

from __future__ import annotations

import argparse
import ast
import random
import tempfile
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.bench.typing_client import TypingClient
from lsp_server.demo.client import ServerFailed
from lsp_server.errors import RedraftError
from lsp_server.output import add_json_argument, write_json

CHARACTERS_PER_WORD = 5
PAUSE_CHANCE = 0.03
PAUSE_S = (0.6, 1.5)
CANCELS = 40


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that was answered before the next key."""

    msg_id: int
    took_ms: float
    text: str
    next_text: str
    along: bool
    cold: bool


@dataclass(slots=True)
class Tally:
    """What happened."""

    requests: int = 0
    along: int = 0
    answered: list[Asked] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """Where typing begins, and what is typed."""

    before: str
    typed: str
    after: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the bench."""
    parser.add_argument("--file", type=Path, required=True, help="Python file to type")
    parser.add_argument("--model", help="folder or id of a model, else the embedded one")
    parser.add_argument("--keys", type=int, default=400, help="keys to type")
    parser.add_argument("--places", type=int, default=8, help="places of the file to type at")
    parser.add_argument("--words", default="40:120", metavar="A:B", help="words a minute")
    parser.add_argument("--seed", type=int, default=0, help="of pauses and speeds")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Type, measure, print. Raises RedraftError for a file without functions."""
    text = args.file.read_text(encoding="utf-8")
    slow, fast = (float(one) for one in args.words.split(":"))
    places = typing_places(text, args.places)
    if not places:
        raise RedraftError(f"{args.file} has no functions to type; give a longer Python file")
    with tempfile.TemporaryDirectory(prefix="redraft-typing-") as folder:
        client = TypingClient(Path(folder), args.file.resolve(), args.model)
        try:
            client.wait_until_ready()
            typist = Typist(client, random.Random(args.seed), (slow, fast))
            for number, place in enumerate(places):
                typist.type_at(place, args.keys // len(places), number)
            typist.cancel_at(places, CANCELS)
            measured = client.measurements()
        finally:
            client.close()
    result = report(typist.tally, measured, args)
    if args.json:
        write_json(args.json, result)
    else:
        for name, value in result.items():
            print(f"{name:28} {value}")
    return 0


def typing_places(text: str, count: int) -> list[Place]:
    """Bodies of functions, evenly spread over the file."""
    lines = text.splitlines(keepends=True)
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and len(node.body) > 2:
            middle = node.body[len(node.body) // 2]
            end = node.end_lineno or middle.lineno
            before, typed = lines[: middle.lineno - 1], "".join(lines[middle.lineno - 1 : end])
            found.append(Place("".join(before), typed.rstrip("\n"), "\n" + "".join(lines[end:])))
    step = max(1.0, len(found) / max(1, count))
    return [found[int(number * step)] for number in range(min(count, len(found)))]


class Typist:
    """Types, asks after every key, and notes what came."""

    def __init__(
        self, client: TypingClient, rng: random.Random, words: tuple[float, float]
    ) -> None:
        self.tally = Tally()
        self._client = client
        self._rng = rng
        self._words = words
        self._pending: tuple[int, Future[Any]] | None = None

    def type_at(self, place: Place, keys: int, number: int) -> None:
        """Type at one place; every place is a document of its own."""
        document = self._client.open(f"typed_{number}.py", place.before + place.after)
        speed = self._rng.uniform(*self._words) * CHARACTERS_PER_WORD / 60
        indent = len(place.typed) - len(place.typed.lstrip(" "))
        document.insert(len(place.before), place.typed[:indent])
        shown, cold = "", True
        for key in range(indent, min(len(place.typed), indent + keys)):
            along = bool(shown) and shown.startswith(place.typed[key])
            document.insert(len(place.before) + key, place.typed[key])
            due = time.monotonic() + self._delay(speed)
            new = self._ask(document, len(place.before) + key + 1, due, place.typed[key + 1 :],
                            along, cold)  # fmt: skip
            shown = new if new is not None else (shown[1:] if along else "")
            cold = False
            time.sleep(max(0.0, due - time.monotonic()))

    def _delay(self, speed: float) -> float:
        if self._rng.random() < PAUSE_CHANCE:
            return self._rng.uniform(*PAUSE_S)
        return self._rng.uniform(0.5, 1.5) / speed

    def _ask(
        self, document: Any, offset: int, due: float, next_text: str, along: bool, cold: bool
    ) -> str | None:
        """What is shown before the next key comes; None when nothing came in time."""
        started = time.monotonic()
        msg_id, future = document.ask(offset)
        self.tally.requests += 1
        self.tally.along += along
        try:
            # A first answer is waited for: nobody types on a place that just opened.
            text = _first_text(future.result(30 if cold else max(0.001, due - started)))
        except NotInTime:
            self._client.cancel(msg_id)
            return None
        except ServerFailed as error:
            self.tally.errors.append(str(error))
            return None
        took_ms = (time.monotonic() - started) * 1000
        self.tally.answered.append(Asked(msg_id, took_ms, text, next_text, along, cold))
        return text

    def cancel_at(self, places: list[Place], count: int) -> None:
        """Requests that are cancelled after a moment, at places that nothing is known of."""
        for number in range(count):
            place = places[number % len(places)]
            document = self._client.open(f"cancelled_{number}.py", place.before + place.after)
            msg_id, future = document.ask(len(place.before))
            time.sleep(self._rng.uniform(0.005, 0.12))
            self._client.cancel(msg_id)
            try:
                future.result(30)
            except ServerFailed:
                pass
            except NotInTime:
                self.tally.errors.append("a cancelled request was not answered")


def _first_text(result: Any) -> str:
    items = (result or {}).get("items", [])
    return str(items[0]["insertText"]) if items else ""


def _matches(text: str, next_text: str) -> bool:
    """Whether the suggestion begins with what is typed next: its next word at least."""
    word = next_text[: max(1, len(next_text) - len(next_text.lstrip(" ")) + 1)]
    return bool(next_text) and text.startswith(word)


def report(tally: Tally, measured: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """The JSON form. Shares are of 1, times in milliseconds."""
    late_ms = [1000 * one for one in measured["loopLate"]]
    known = {one["id"] for one in measured["answers"] if one["withoutModel"]}
    without_model = [one for one in tally.answered if one.msg_id in known and one.text]
    fresh = [one for one in tally.answered if one.msg_id not in known]
    matching = [one for one in without_model if one.along and _matches(one.text, one.next_text)]
    fresh_ms = [one.took_ms for one in fresh if not one.cold]
    return {
        "requests": tally.requests,
        "along": tally.along,
        "answered_without_model": len(matching) / tally.along if tally.along else 0.0,
        "without_model": len(without_model),
        "without_model_ms_p95": _percentile([one.took_ms for one in without_model], 95),
        "fresh": len(fresh_ms),
        "fresh_ms_p50": _percentile(fresh_ms, 50),
        "fresh_ms_p95": _percentile(fresh_ms, 95),
        "cold_ms_p50": _percentile([one.took_ms for one in fresh if one.cold], 50),
        "cancel_ms_p95": _percentile([1000 * one for one in measured["cancels"]], 95),
        "did_change_ms_p95": _percentile([1000 * one for one in measured["didChange"]], 95),
        "loop_blocked_ms_p999": _percentile(late_ms, 99.9),
        "loop_blocked_ms_max": max(late_ms, default=0.0),
        "errors": len(tally.errors),
        "first_errors": tally.errors[:3],
        "file": args.file.name,
        "keys": args.keys,
        "words_per_minute": args.words,
        "seed": args.seed,
    }


def _percentile(values: list[float], percent: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))], 3)
