"""A person who types a file: where, how fast, and what was shown meanwhile."""

from __future__ import annotations

import ast
import random
import re
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass, field
from typing import Any

from lsp_server.demo.client import ServerFailed
from tests.benchmarks.keystrokes.client import TypedDocument, TypingClient

CHARACTERS_PER_WORD = 5
PAUSE_CHANCE = 0.03
PAUSE_S = (0.6, 1.5)
PATIENCE_S = 30.0
WAIT_EVERY = 6
"""Keys typed between two suggestions that are waited for."""


@dataclass(frozen=True, slots=True)
class Asked:
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
    typed: list[Asked] = field(default_factory=list)
    cold: list[Asked] = field(default_factory=list)
    waited: list[Asked] = field(default_factory=list)
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


def words_of(text: str, count: int, rng: random.Random) -> list[tuple[int, int]]:
    """Start and length of words of at least six letters, not the first of their lines."""
    found = [
        (word.start(), len(word.group()))
        for word in re.finditer(r"(?<=[^\s\w])[A-Za-z_]{6,}|(?<=\S )[A-Za-z_]{6,}", text)
    ]
    return sorted(rng.sample(found, min(count, len(found))))


class Typist:
    """Types into one document, asks after every key, and notes what came.

    ``uri`` is the file's own, so that the index does not hold what is being typed.
    """

    def __init__(
        self, client: TypingClient, uri: str, rng: random.Random, words: tuple[float, float]
    ) -> None:
        self.tally = TypingTally()
        self._client = client
        self._uri = uri
        self._rng = rng
        self._words = words

    def type_at(self, place: TypedPassage, keys: int) -> None:
        """Type at one place, as fast as this person types today."""
        document = self._client.open(self._uri, place.before + place.after)
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
        document = self._client.open(self._uri, place.before + place.after)
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
                self.tally.waited.append(Asked(msg_id, took_ms, text, "", False))
        document.close()

    def cancel_at(self, places: list[TypedPassage], count: int) -> None:
        """Requests that are cancelled after a moment, where nothing is known."""
        for number in range(count):
            place = places[number % len(places)]
            typed = place.typed[: 10 + 7 * number]
            document = self._client.open(self._uri, place.before + typed + place.after)
            msg_id, future = document.ask(len(place.before) + len(typed))
            time.sleep(self._rng.uniform(0.005, 0.12))
            self._client.cancel(msg_id)
            try:
                future.result(PATIENCE_S)
            except ServerFailed:
                pass
            except NotInTime:
                self.tally.errors.append("a cancelled request was not answered")
            document.close()

    def explain_words(self, text: str, count: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Completions at the start and in the middle of the same words, by the model alone."""
        document = self._client.open(self._uri, text)
        pairs = []
        for start, length in words_of(text, count, self._rng):
            end = text.find("\n", start)
            pair = []
            for cursor in (start, start + length // 2):
                document.replace(text[:cursor] + text[end:])
                pair.append(document.explain(cursor))
            pairs.append((pair[0], pair[1]))
        document.close()
        return pairs

    def _indent(self, document: TypedDocument, place: TypedPassage) -> int:
        indent = len(place.typed) - len(place.typed.lstrip(" "))
        document.insert(len(place.before), place.typed[:indent])
        return indent

    def _delay(self, speed: float) -> float:
        if self._rng.random() < PAUSE_CHANCE:
            return self._rng.uniform(*PAUSE_S)
        return self._rng.uniform(0.5, 1.5) / speed

    def _ask(
        self,
        document: TypedDocument,
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
            self._client.cancel(msg_id)
            self.tally.late += 1
            return None
        if text is not None:
            took_ms = (time.monotonic() - started) * 1000
            group = self.tally.cold if due is None else self.tally.typed
            group.append(Asked(msg_id, took_ms, text, place.typed[typed:], along))
        return text

    def _answer(self, future: Future[Any], patience_s: float) -> str | None:
        """The first item's text; None after an error, which is noted."""
        try:
            items = (future.result(patience_s) or {}).get("items", [])
        except ServerFailed as error:
            self.tally.errors.append(str(error))
            return None
        return str(items[0]["insertText"]) if items else ""


def matches(text: str, next_text: str) -> bool:
    """Whether a suggestion begins with what is typed next: its next character that shows."""
    word = next_text[: max(1, len(next_text) - len(next_text.lstrip(" ")) + 1)]
    return bool(next_text) and text.startswith(word)
