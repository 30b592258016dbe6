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

from lsp_server.commands.bench.typing import PATIENCE_S
from lsp_server.commands.demo.session import OpenDocument
from lsp_server.editor.editing.hunks import minimal_hunks
from lsp_server.text.text_edit import TextEdit
from tests.benchmarks.keystrokes.client import PrivateDaemon, TypingClient
from tests.benchmarks.keystrokes.command import cancel_figures
from tests.benchmarks.keystrokes.processes import wait_until_idle
from tests.benchmarks.next_edits.commits import CommitStep

DEBOUNCE_S = 0.15
"""Editors ask so long after the last key (Neovim's and VS Code's clients do)."""
KEY_S = 0.06
MOST_KEYS = 24
CANCELS_OF = 3
"""One request in so many is cancelled by a key."""
OF_A_MODEL = ("insert ", "change ", "delete ")


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
            "nextEdits": {"gate": "off"},
            # It is built once, at the first start: that is no part of these times.
            "index": {"common": "none"},
        }
        daemon = PrivateDaemon(Path(folder), workspace, args.model, settings)
        # What was compiled for this user need not be compiled again.
        daemon.environment["XDG_CACHE_HOME"] = os.environ.get(
            "XDG_CACHE_HOME", str(Path.home() / ".cache")
        )
        try:
            client = daemon.connect()
            edits = list(typed_edits(steps))
            # Forwards are measured, and by how many threads they are computed, behind the first
            # answer, so that one is not left.
            _ask_for_all(client, daemon, edits[:1], args, cancels=False)
            wait_until_idle(daemon)
            request = _ask_for_all(client, daemon, edits[1:], args)
            measured = client.measurements()
            request |= {
                "from asking to the first tokens": [read for read, _ in measured["nextEdits"]],
                "and on to the first change": [
                    all_s - read for read, all_s in measured["nextEdits"]
                ],
            }
            client.close()
        finally:
            daemon.stop()
    for name, times in request.items():
        if times:
            p50, p95 = np.percentile(times, [50, 95])
            print(f"{name}: {len(times)}, p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms")
    print(cancel_figures(measured), "(beyond the forward <= 5)")
    change = measured["didChange"]
    print(f"didChange: {change['count']}, p95 {1000 * change['p95']:.1f} ms (<= 2)")


def _ask_for_all(
    client: TypingClient,
    daemon: PrivateDaemon,
    edits: list[Typed],
    args: argparse.Namespace,
    *,
    cancels: bool = True,
) -> dict[str, list[float]]:
    rng = random.Random(args.seed)
    rng.shuffle(edits)
    ends = time.monotonic() + args.seconds
    found: dict[str, list[float]] = {"from the last key to a change (450)": [], "to none": []}
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
            if all(title.startswith(OF_A_MODEL) for title in titles):
                found[list(found)[not titles]].append(took_s)
        document.close()
    return found


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
