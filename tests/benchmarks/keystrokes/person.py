"""What else a person does than type: cancels, and words that are asked for twice."""

from __future__ import annotations

import random
import re
import time
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

from tests.benchmarks.keystrokes.editor_process import ServerFailed
from tests.benchmarks.keystrokes.typist import PATIENCE_S, TypedPassage, Typist


def words_of(text: str, count: int, rng: random.Random) -> list[tuple[int, int]]:
    """Start and length of words of at least six letters, not the first of their lines."""
    found = [
        (word.start(), len(word.group()))
        for word in re.finditer(r"(?<=[^\s\w])[A-Za-z_]{6,}|(?<=\S )[A-Za-z_]{6,}", text)
    ]
    return sorted(rng.sample(found, min(count, len(found))))


class MeasuredTypist(Typist):
    """Types, cancels and asks where words begin and within them."""

    def cancel_at(self, places: list[TypedPassage], count: int) -> None:
        """Requests that are cancelled after a moment, where nothing is known."""
        for number in range(count):
            place = places[number % len(places)]
            typed = place.typed[: 10 + 7 * number]
            document = self.open(place.before + typed + place.after)
            msg_id, future = document.ask(len(place.before) + len(typed))
            time.sleep(self._rng.uniform(0.005, 0.12))
            self.cancel(msg_id)
            try:
                future.result(PATIENCE_S)
            except ServerFailed:
                pass
            except NotInTime:
                self.tally.errors.append("a cancelled request was not answered")
            document.close()

    def explain_words(self, text: str, count: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Completions at the start and in the middle of the same words, by the model alone."""
        document = self.open(text)
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
