"""Acceptance rates of suggestions by language, stored on this machine alone. Where those of several
lines are hardly ever taken, single lines are offered."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operating_system.files import write_private
from operating_system.folders import state_folder

logger = logging.getLogger(__name__)

WEIGHT = 0.05
"""Of the newest outcome; one in so many of the last twenty moves the rate."""
FEWEST = 20
"""Outcomes before a rate says anything."""
HARDLY_EVER = 0.08
TRY_AGAIN_EVERY = 8
SAVE_EVERY = 10
START = 0.3
"""A rate before anything is known."""


@dataclass(slots=True)
class Rate:
    """A running rate of acceptance and how many outcomes it was learnt from."""

    rate: float = START
    count: int = 0

    def learn(self, accepted: bool) -> None:
        """One more outcome. The first ones count equally, later ones fade."""
        self.count += 1
        self.rate += (accepted - self.rate) * max(WEIGHT, 1 / (self.count + 2))


def acceptance_file() -> Path:
    """Return the file of acceptance rates."""
    return state_folder() / "acceptance.json"


class AcceptanceRates:
    """Rates by language and by whether a suggestion has several lines, shared by all clients."""

    def __init__(self, file: Path | None = None) -> None:
        """``file``: where they are kept; without one they are forgotten."""
        self._file = file
        self._rates: dict[tuple[str, bool], Rate] = _read(file) if file is not None else {}
        self._unsaved = 0
        self._single_line_turns: dict[str, int] = {}

    def learn(self, language: str, several: bool, accepted: bool) -> None:
        """A suggestion was taken or turned down."""
        self._rates.setdefault((language, several), Rate()).learn(accepted)
        self._unsaved += 1
        if self._unsaved >= SAVE_EVERY:
            self.save()

    def wants_several(self, language: str) -> bool:
        """Return True if several lines may be offered in a language now."""
        rate = self._rates.get((language, True))
        if rate is None or rate.count < FEWEST or rate.rate >= HARDLY_EVER:
            return True
        times = self._single_line_turns[language] = self._single_line_turns.get(language, 0) + 1
        return times % TRY_AGAIN_EVERY == 0

    def by_language(self) -> dict[str, dict[str, float]]:
        """For the status: ``{language: {rate, shown}}``, shown counted in outcomes."""
        rates: dict[str, dict[str, float]] = {}
        for language in sorted({language for language, _ in self._rates}):
            both = [rate for (name, _), rate in self._rates.items() if name == language]
            count = sum(each.count for each in both)
            rate = sum(each.rate * each.count for each in both) / max(1, count)
            rates[language] = {"rate": round(rate, 3), "shown": count}
        return rates

    def save(self) -> None:
        """Keep what was learnt; a full disk costs only that."""
        self._unsaved = 0
        if self._file is None:
            return
        rows = [
            {"language": language, "several": several, "rate": rate.rate, "count": rate.count}
            for (language, several), rate in self._rates.items()
        ]
        try:
            write_private(self._file, json.dumps(rows))
        except OSError as error:
            logger.warning("acceptance rates cannot be saved: %s", error)


def _read(file: Path) -> dict[tuple[str, bool], Rate]:
    try:
        rows: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
        return {
            (str(row["language"]), bool(row["several"])): Rate(
                min(1.0, max(0.0, float(row["rate"]))), int(row["count"])
            )
            for row in rows
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("acceptance rates are begun anew: %s", error)
        return {}
