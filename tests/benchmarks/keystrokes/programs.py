"""``tests.benchmarks programs``: a person types whole files from nothing, with the settings that an
editor has.

Five to eight keys a second, and a pause where a person makes one: behind lines, and before blocks.
Each ghost text that comes before the next key is logged with what was typed in the end. It is
*right* where all of it is typed next, *useless* where it is right and saves fewer than three
characters, or was there for less than a fifth of a second, else *wrong*. It *flickers* where
another text takes its place while it is typed along. What comes in comments, Markdown and messages
of commits counts apart. By turns with suggestions off, and with another version. With ``--patient``
each answer is waited for before the next key's time begins, so a busy machine changes nothing.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import TimeoutError as NotInTime
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.roles import PROSE, Role
from lsp_server.text.syntax.tree import SyntaxTree
from tests.benchmarks.keystrokes.client import PrivateDaemon, TypingClient
from tests.benchmarks.keystrokes.open_document import OpenDocument
from tests.benchmarks.keystrokes.processes import seconds_by_process, wait_until_idle
from tests.benchmarks.keystrokes.typist import PATIENCE_S, percentile

LANGUAGES = {".py": "python", ".ts": "typescript", ".tsx": "typescriptreact", ".go": "go",
             ".md": "markdown"}  # fmt: skip
KEYS_A_SECOND = 5.0, 8.0
PAUSE_S = 0.6, 2.0
LINE_PAUSE_CHANCE, KEY_PAUSE_CHANCE = 0.3, 0.01
FEWEST_SAVED, SHORTEST_S = 3, 0.2


@dataclass(frozen=True, slots=True)
class ShownGhost:
    """A ghost text that was on the screen, what was typed behind it, and for how long it was
    there."""

    language: str
    is_prose: bool
    text: str
    rest: str
    after_ms: float
    """From the key that it came after."""
    seen_s: float
    flickers: bool

    @property
    def verdict(self) -> str:
        """Right, useless or wrong."""
        if not self.rest.startswith(self.text.rstrip()):
            return "wrong"
        is_short = len(self.text.strip()) < FEWEST_SAVED or self.seen_s < SHORTEST_S
        return "useless" if is_short else "right"


@dataclass(slots=True)
class TypedPrograms:
    """What came while some files were typed."""

    shown: list[ShownGhost] = field(default_factory=list)
    seconds: dict[bool, float] = field(default_factory=lambda: {False: 0.0, True: 0.0})
    """Typed in code, and in prose."""


def prose_of(text: str, language: str, name: str) -> list[bool]:
    """Return for each character of a text whether it is prose: in a comment, or in a document
    outside of its fences."""
    grammar = grammar_of(language, name)
    is_prose = [False] * len(text)
    if grammar in PROSE:
        is_code, offset = False, 0
        for line in text.splitlines(keepends=True):
            is_fence = line.lstrip().startswith(("```", "~~~"))
            is_prose[offset : offset + len(line)] = [is_fence or not is_code] * len(line)
            is_code, offset = is_code != is_fence, offset + len(line)
        return is_prose
    comments = SyntaxTree.parsed(text, grammar).pieces()
    for piece in comments:
        if piece.role is Role.COMMENT:
            is_prose[piece.start : piece.end] = [True] * (piece.end - piece.start)
    return is_prose


def type_file(
    client: TypingClient,
    workspace: Path,
    file: Path,
    keys: int,
    rng: random.Random,
    *,
    is_patient: bool = False,
) -> TypedPrograms:
    """Type the beginning of a file from nothing, as a file of a workspace, and return what came.
    ``is_patient``: each answer counts as come at once, however late it is."""
    typed = TypedPrograms()
    text = file.read_text(encoding="utf-8")[:keys]
    language = LANGUAGES.get(file.suffix, "git-commit")
    document = OpenDocument(client.client, (workspace / file.name).as_uri(), "", language)
    is_prose = prose_of(text, language, file.name)
    showing = ""
    for key, character in enumerate(text):
        document.insert(key, character)
        asked_s, delay_s = time.monotonic(), _delay(character, rng)
        due_s = asked_s + delay_s
        along = showing[1:] if showing.startswith(character) else ""
        msg_id, future = document.ask(key + 1)
        try:
            answer = future.result(PATIENCE_S if is_patient else max(0.001, delay_s)) or {}
        except NotInTime:
            client.client.notify("$/cancelRequest", {"id": msg_id})
            items, came_s = [], due_s
        else:
            items, came_s = answer.get("items", []), time.monotonic()
        if is_patient:
            due_s = came_s + delay_s
        new = str(items[0]["insertText"]) if items else ""
        if new and new != along:
            rest = text[key + 1 :]
            seen_s = _fits_for(new, rest, due_s - came_s)
            after_ms = 1000 * (came_s - asked_s)
            prose, flickers = is_prose[key], bool(along)
            shown = ShownGhost(language, prose, new, rest, after_ms, seen_s, flickers)
            typed.shown.append(shown)
        showing = new or along
        typed.seconds[is_prose[key]] += delay_s
        time.sleep(max(0.0, due_s - time.monotonic()))
    document.close()
    return typed


def _delay(character: str, rng: random.Random) -> float:
    is_pause = rng.random() < (LINE_PAUSE_CHANCE if character == "\n" else KEY_PAUSE_CHANCE)
    return rng.uniform(*PAUSE_S) if is_pause else 1 / rng.uniform(*KEYS_A_SECOND)


def _fits_for(text: str, rest: str, first_s: float) -> float:
    """Return for how long a text is on the screen: until the key that does not fit."""
    fitting = 0
    while fitting < min(len(text), len(rest)) and text[fitting] == rest[fitting]:
        fitting += 1
    return first_s + fitting / KEYS_A_SECOND[1]


def program_figures(typed: TypedPrograms) -> dict[str, Any]:
    """Return figures a minute of typing, for code and prose."""
    figures: dict[str, Any] = {}
    for is_prose, name in ((False, "code"), (True, "prose")):
        minutes = typed.seconds[is_prose] / 60
        shown = [each for each in typed.shown if each.is_prose == is_prose]
        figures[f"{name}: minutes"] = round(minutes, 2)
        for verdict in ("right", "wrong", "useless"):
            count = sum(each.verdict == verdict for each in shown)
            figures[f"{name}: {verdict} a minute"] = round(count / minutes, 2) if minutes else None
        figures[f"{name}: flickers"] = sum(each.flickers for each in shown)
        figures[f"{name}: ms after the key, p50"] = percentile(
            [each.after_ms for each in shown], 50
        )
    return figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the bench."""
    parser.add_argument("--files", type=Path, nargs="+", required=True, help="files to type")
    parser.add_argument("--model", help="folder, GGUF file or id; else the chosen model")
    parser.add_argument("--keys", type=int, default=600, help="keys to type of each file")
    parser.add_argument("--seed", type=int, default=0, help="of pauses and speeds")
    parser.add_argument("--program", type=Path, help="and with this redraft of another version")
    parser.add_argument("--log", action="store_true", help="print what was shown, too")
    parser.add_argument("--patient", action="store_true", help="wait for each answer")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Type the files by turns, and print."""
    kinds: dict[str, tuple[dict[str, Any], list[str] | None]] = {
        "on": ({}, None),
        "off": ({"enabled": False}, None),
    }
    if args.program:
        kinds["other"] = ({}, [str(args.program), "serve"])
    result = {}
    for kind, (settings, command) in kinds.items():
        result[kind] = _typed(args, args.files, settings, command, is_logged=args.log)
        print(kind)
        for name, value in result[kind].items():
            print(f"  {name:36} {value}")
    if args.json:
        write_json(args.json, result)
    return 0


def _typed(
    args: argparse.Namespace,
    files: Sequence[Path],
    settings: dict[str, Any],
    command: list[str] | None,
    *,
    is_logged: bool,
) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redraft-programs-")))
        workspace = folder / "workspace"
        workspace.mkdir()
        daemon = PrivateDaemon(folder, workspace, args.model, settings, command)
        stack.callback(daemon.stop)
        client = daemon.connect(wait=not settings)
        stack.callback(client.close)
        if not settings:
            wait_until_idle(daemon)
        roots = [daemon.status()["pid"], client.pid]
        before, typed = seconds_by_process(roots), TypedPrograms()
        for number, file in enumerate(files):
            rng = random.Random(args.seed + number)
            came = type_file(client, workspace, file, args.keys, rng, is_patient=args.patient)
            typed.shown += came.shown
            for is_prose, seconds in came.seconds.items():
                typed.seconds[is_prose] += seconds
        minutes = sum(typed.seconds.values()) / 60
        used = seconds_by_process(roots)
        used.subtract(before)
        # What ended meanwhile counts for the daemon.
        used["editor.daemon.host"] += sum(seconds for seconds in used.values() if seconds < 0)
        used = +used
    for each in typed.shown if is_logged else ():
        place = "prose" if each.is_prose else "code"
        print(f"{each.verdict:8}{place:6}{each.language:16}{each.text!r} | {each.rest[:40]!r}")
    figures = program_figures(typed)
    figures["processor seconds a minute"] = round(used.total() / minutes, 2)
    figures |= {f"of these {name}": round(each / minutes, 2) for name, each in used.most_common()}
    return figures
