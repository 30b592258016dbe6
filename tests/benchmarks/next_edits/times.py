"""How long a model's next edits take in a real server: from the last key to what is shown, cancels,
and what the history costs every key."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lsp_server.editor.editing.hunks import minimal_hunks
from lsp_server.text.text_edit import TextEdit
from tests.benchmarks.keystrokes.client import PrivateDaemon, TypingClient
from tests.benchmarks.keystrokes.command import cancel_figures
from tests.benchmarks.keystrokes.open_document import OpenDocument
from tests.benchmarks.keystrokes.processes import wait_until_idle
from tests.benchmarks.keystrokes.typist import PATIENCE_S
from tests.benchmarks.next_edits.commits import CommitStep

DEBOUNCE_S = 0.15
"""Editors ask so long after the last key (Neovim's and VS Code's clients do)."""
KEY_S = 0.06
MOST_KEYS = 24
CANCELS_OF = 3
"""One request in so many is cancelled by a key."""
LONGEST_ANSWER_S, POLL_S = 3.0, 0.02
"""An answer whose first change is shown is whole so long after that, at most."""
OF_A_MODEL = ("insert ", "change ", "delete ")


class TimedAnswer(NamedTuple):
    """What a request of an editor took: all, and what the server says of the model's answer."""

    changes: bool
    """Whether it had a change."""
    changed: float
    """When the last key was typed, by the clock of all processes."""
    took_s: float
    """From then on."""
    of_model: dict[str, float]
    """The fields of ``AnswerTimes``."""

    def parts(self) -> dict[str, float]:
        """Milliseconds, and what was computed, by name. What ran before the last key is cut off."""
        each = self.of_model
        known_s = each["first_change_s"]
        asked_s = each["asked"] - self.changed
        return {
            "until the model is asked, ms": 1000 * asked_s,
            "prompt, ms": 1000 * each["prompt_s"],
            "text, ms": 1000 * each["text_s"],
            "beside both, ms": 1000 * (each["whole_s"] - each["prompt_s"] - each["text_s"]),
            "asked to first change or end, ms": 1000 * known_s,
            "asked to end, ms": 1000 * each["whole_s"],
            "known to shown, ms": 1000 * (self.took_s - asked_s - known_s),
            "in all, ms": 1000 * self.took_s,
            "tokens of the prompt": each["prompt_tokens"],
            "rows of the prompt": each["prompt_rows"],
            "ms a row of the prompt": 1000 * each["prompt_s"] / max(each["prompt_rows"], 1),
            "tokens of the text": each["text_tokens"],
            "forwards of the text": each["text_forwards"],
            "rows of the text": each["text_rows"],
            "ms a row of the text": 1000 * each["text_s"] / max(each["text_rows"], 1),
        }


class Typed(NamedTuple):
    """An edit that is typed: the text before it, and one stretch that becomes another."""

    path: str
    before: str
    hunk: TextEdit[int]


def typed_edits(steps: Sequence[CommitStep]) -> Iterator[Typed]:
    """The last edits of steps, where they are one short stretch."""
    for step in steps:
        before = step.edits[0].text_before()
        hunks = minimal_hunks(before, step.document.text)
        if step.kind == "next" and len(hunks) == 1 and 0 < len(hunks[0].text) <= MOST_KEYS:
            yield Typed(step.path, before, hunks[0])


def print_times(args: argparse.Namespace, steps: Sequence[CommitStep]) -> None:
    """Type edits of commits, ask as an editor does, and print what it took."""
    with tempfile.TemporaryDirectory(prefix="redraft-next-edits-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        settings = {
            "model": {"path": str(Path(args.model).resolve()), "threads": args.threads},
            "nextEdits": {"gate": "off", "format": args.formats},
            # It is built once, at the first start: that is no part of these times.
            "index": {"common": "none"},
        }
        daemon = PrivateDaemon(Path(folder), workspace, args.model, settings, measured=True)
        # What was compiled for this user need not be compiled again.
        daemon.environment["XDG_CACHE_HOME"] = os.environ.get(
            "XDG_CACHE_HOME", str(Path.home() / ".cache")
        )
        try:
            client = daemon.connect()
            edits = list(typed_edits(steps))
            # Forwards are measured, and by how many threads they are computed, behind the first
            # answer of the model, so one is not left.
            while edits and not _ask_for_all(client, daemon, [edits.pop()], args, cancels=False):
                pass
            wait_until_idle(daemon)
            first_rows_s = daemon.status()["engines"][0]["prompt_seconds"][0]
            print(f"64 rows of a prompt: {1000 * first_rows_s:.0f} ms, as the engine measured them")
            answers = _ask_for_all(client, daemon, edits, args)
            measured = client.measurements()
            client.close()
        finally:
            daemon.stop()
    _print_parts("from the last key to a change (450)", [one for one in answers if one.changes])
    _print_parts("to none", [one for one in answers if not one.changes])
    print(cancel_figures(measured), "(beyond the forward <= 5)")
    change = measured["didChange"]
    print(f"didChange: {change['count']}, p95 {1000 * change['p95']:.1f} ms (<= 2)")


def _print_parts(name: str, answers: Sequence[TimedAnswer]) -> None:
    print(f"{name}: {len(answers)}, of each part p50 and p95")
    for part in answers[0].parts() if answers else ():
        p50, p95 = np.percentile([one.parts()[part] for one in answers], [50, 95])
        print(f"  {part:34}{p50:8.{2 * (p50 < 2)}f}{p95:8.{2 * (p95 < 2)}f}")


def _ask_for_all(
    client: TypingClient,
    daemon: PrivateDaemon,
    edits: list[Typed],
    args: argparse.Namespace,
    *,
    cancels: bool = True,
) -> list[TimedAnswer]:
    rng = random.Random(args.seed)
    rng.shuffle(edits)
    ends = time.monotonic() + args.seconds
    found = []
    for number, one in enumerate(edits):
        if time.monotonic() > ends:
            break
        document = client.open((daemon.workspace / one.path).as_uri(), one.before)
        cursor = _type(document, one.hunk)
        changed = time.monotonic()
        time.sleep(DEBOUNCE_S)
        future = document.ask_next_edit(cursor)
        if cancels and number % CANCELS_OF == 0:
            time.sleep(rng.uniform(0.1, 0.4))
            document.insert(cursor, " ")
            future.result(PATIENCE_S)
        else:
            answer: dict[str, Any] = future.result(PATIENCE_S) or {"edits": []}
            took_s = time.monotonic() - changed
            titles = [each["title"] for each in answer["edits"]]
            is_of_model = all(title.startswith(OF_A_MODEL) for title in titles)
            if is_of_model and (of_model := _asked_since(client, changed)):
                found.append(TimedAnswer(bool(titles), changed, took_s, of_model))
        document.close()
    return found


def _asked_since(client: TypingClient, changed: float) -> dict[str, float]:
    """The times of the first answer that was asked for since then, once it is whole; empty where
    none comes."""
    ends = time.monotonic() + LONGEST_ANSWER_S
    while time.monotonic() < ends:
        for one in client.measurements()["nextEdits"]:
            if one["asked"] >= changed:
                return dict(one)
        time.sleep(POLL_S)
    return {}


def _type(document: OpenDocument, hunk: TextEdit[int]) -> int:
    """Delete and write a stretch key by key; where the cursor is then."""
    text = document.text
    if hunk.end > hunk.start:
        document.delete(hunk.start, hunk.end)
    for number, key in enumerate(hunk.text):
        time.sleep(KEY_S)
        document.insert(hunk.start + number, key)
    assert document.text == text[: hunk.start] + hunk.text + text[hunk.end :]
    return hunk.start + len(hunk.text)
