"""Processor seconds of all of Redraft's processes for a minute of typing, by turns with suggestions
off and with another installation."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.keystrokes.client import PrivateDaemon
from tests.benchmarks.keystrokes.processes import processor_s, wait_until_idle
from tests.benchmarks.keystrokes.typist import TypedPassage, Typist

TURNS = 4
TURN_KEYS = 120


def processor_seconds(
    model: str | None,
    workspace: Path,
    places: Sequence[TypedPassage],
    words: str,
    other: Path | None,
) -> dict[str, float]:
    """Return seconds for a minute of typing at ``places``, by what typed: ``on`` and ``off`` of
    this installation, ``other`` of the program of another one. Each turn types the same keys."""
    settings = {"on": {}, "off": {"enabled": False}}
    kinds = [*settings, *(["other"] if other else [])]
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    with ExitStack() as stack:
        daemons = {}
        for kind in kinds:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redraft-cost-")))
            command = [str(other), "serve"] if other and kind == "other" else None
            daemon = PrivateDaemon(folder, workspace, model, settings.get(kind), command)
            stack.callback(daemon.stop)
            client = daemon.connect(wait=kind != "off")
            stack.callback(client.close)
            daemons[kind] = daemon, client
            if kind != "off":
                wait_until_idle(daemon)
        for turn in range(TURNS):
            for kind, (daemon, client) in daemons.items():
                place = places[turn % len(places)]
                uri = (workspace / f"typed_{turn}.py").as_uri()
                typist = Typist(client.client, uri, random.Random(turn), words)
                roots = [daemon.status()["pid"], client.pid]
                before, started = processor_s(roots), time.monotonic()
                typist.type_at(place, TURN_KEYS)
                wait_until_idle(daemon)
                minutes = (time.monotonic() - started) / 60
                found[kind].append((processor_s(roots) - before) / minutes)
    return {kind: statistics.mean(seconds) for kind, seconds in found.items()}
