"""``tests.benchmarks gate``: is what is shown right to its end, and is nothing shown where nothing
is missing?

Lines of repositories are cut somewhere, and names of finished code are typed again to their end.
The model is asked there once, as an editor asks; what each gate shows is computed from that. A text
that is shown is right if it is the whole rest of the line, or a unit that begins it: words are
whole, brackets and quotes closed. ``--written`` keeps what the model wrote, ``--fit`` calibrates
the gate on it: never on the repositories that figures are reported of.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.execution.forwards import told
from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.editor.completion.automatic_trigger import is_place, offered
from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.editor.completion.provider import SINGLE_LINE_TOKENS
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import BenchError
from lsp_server.shared.settings import CompletionSettings
from lsp_server.tasks.completion.confidence_gate import (
    LINES,
    THRESHOLDS,
    UNITS,
    BetaCalibration,
    LikelyPiece,
    Unit,
    aligned,
    gated,
    lines_of,
    pieces_of,
    rest_of,
    units_of,
)
from lsp_server.tasks.steps import in_place
from lsp_server.text.syntax.incremental_brackets import IncrementalBrackets
from tests.benchmarks.completion.places import CodePlace, RepositoryFile, files_of, places_of

if TYPE_CHECKING:
    from lsp_server.engine.service import EngineService

NEVER = 1e-300
"""A gate that never closes: what the model wrote is told with its probabilities."""
MOST_TABS = 9
BINS = 10
"""Of the reliability curve, with as many texts in each."""
_CALIBRATIONS = {"lines": LINES, "units": UNITS}


@dataclass(frozen=True, slots=True)
class WrittenText:
    """What the model wrote at a place, with its filter's cuts."""

    place: CodePlace
    text: str
    pieces: list[LikelyPiece]

    def shown(self, threshold: float, typed: int = 0) -> str:
        """What a gate shows of it once so many characters of it stand in the document."""
        ask = self.place.request
        ask = replace(ask, prefix=ask.prefix + self.text[:typed])
        if not is_place(ask):
            return ""
        return offered(gated(self.text[typed:], rest_of(self.pieces, typed), threshold), ask)

    def tabs(self, threshold: float) -> int:
        """How often somebody presses Tab until the line is whole, or nothing more is shown, or that
        is wrong."""
        typed = 0
        for count in range(MOST_TABS):
            shown = self.shown(threshold, typed)
            if not shown or not is_right(self.text[:typed] + shown, self.place):
                return count
            typed += len(shown)
        return MOST_TABS


def is_right(shown: str, place: CodePlace) -> bool:
    """Whether a text is the rest of the line, with lines below it, or a unit that begins it."""
    if not (place.rest + place.suffix).startswith(shown):
        return False
    behind = (place.rest + place.suffix)[len(shown) :]
    if not behind.split("\n", 1)[0].strip() and len(shown) >= len(place.rest.rstrip()):
        return True
    is_torn = all(one.isalnum() or one == "_" for one in (shown[-1], behind[0]))
    return not is_torn and _is_closed(shown)


def _is_closed(text: str) -> bool:
    """Whether a text closes the brackets and quotes that it opens."""
    open_signs: list[str] = []
    for sign in text:
        if open_signs and open_signs[-1] in "\"'`":
            if sign == open_signs[-1]:
                open_signs.pop()
        elif sign in "([{\"'`":
            open_signs.append(sign)
        elif sign in ")]}" and open_signs:
            open_signs.pop()
    return not open_signs


class GateFigures(NamedTuple):
    """What a gate shows, in places and in shares of them."""

    rests: int
    shown: float
    right: float
    """Of those that are shown."""
    whole: float
    """Of those that are shown: the whole rest of the line."""
    interval: tuple[float, float]
    """95 % of ``right``."""
    tabs: float
    """Median of a line of which something right is shown."""
    at_ends: float
    in_lines: float
    """Of the places at which nothing is missing, those with a text."""


def figures_of(written: Sequence[WrittenText], threshold: float) -> GateFigures:
    """What a gate shows of what was written."""
    kinds: dict[str, list[WrittenText]] = defaultdict(list)
    for one in written:
        kinds[one.place.kind].append(one)
    shown = [(one, text) for one in kinds["rest"] if (text := one.shown(threshold))]
    right = [one for one, text in shown if is_right(text, one.place)]
    whole = [one for one, text in shown if text.rstrip() == one.place.rest.rstrip()]
    nothing = {
        kind: sum(bool(one.shown(threshold)) for one in kinds[kind]) / max(len(kinds[kind]), 1)
        for kind in ("end", "in line")
    }
    count = max(len(shown), 1)
    return GateFigures(
        rests=len(kinds["rest"]),
        shown=len(shown) / max(len(kinds["rest"]), 1),
        right=len(right) / count,
        whole=len(whole) / count,
        interval=wilson(len(right), len(shown)),
        tabs=statistics.median([one.tabs(threshold) for one in right] or [0]),
        at_ends=nothing["end"],
        in_lines=nothing["in line"],
    )


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not of:
        return 0.0, 1.0
    z, share = 1.96, count / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


class JudgedUnit(NamedTuple):
    """A text that a gate may show, its chance by the gate, and whether it was right."""

    kind: str
    joint: float
    length: int
    chance: float
    right: bool


def judged(written: Iterable[WrittenText]) -> Iterator[JudgedUnit]:
    """The whole lines and the units of what was written, as far as they might be offered."""
    for one in written:
        if not is_place(one.place.request) or one.text.startswith("\n"):
            continue
        parts: dict[str, Iterable[Unit]] = {
            "lines": list(lines_of(one.text, one.pieces))[:1],
            "units": units_of(one.text, one.pieces),
        }
        for kind, units in parts.items():
            for unit in units:
                text = one.text[: unit.end].rstrip()
                if offered(text, one.place.request):
                    right = bool(one.place.rest) and is_right(text, one.place)
                    length = len(text.strip())
                    yield JudgedUnit(kind, unit.joint, length, unit.chance(one.text), right)


def fitted(examples: Sequence[JudgedUnit]) -> BetaCalibration:
    """The calibration under which what was right is likeliest, by Newton's method."""
    joint = np.minimum([one.joint for one in examples], -1e-3)
    lengths = np.log([one.length for one in examples])
    inputs = np.column_stack([np.ones(len(joint)), joint, np.log(-np.expm1(joint)), lengths])
    right = np.array([one.right for one in examples], float)
    weights: NDArray[np.float64] = np.zeros(4)
    ridge = 1e-2 * np.eye(4)
    for _ in range(100):
        chance = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (right - chance) - ridge @ weights
        curve = (inputs.T * (chance * (1 - chance) + 1e-6)) @ inputs + ridge
        step = np.linalg.solve(curve, gradient)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return BetaCalibration(*(round(float(one), 2) for one in weights))


class Reliability(NamedTuple):
    """Texts of about the same chance: how many, what was predicted, what was observed."""

    texts: int
    predicted: float
    observed: float


def reliability(examples: Iterable[JudgedUnit]) -> list[Reliability]:
    """The reliability curve: bins of as many texts, the least likely first."""
    ordered = sorted(examples, key=lambda one: one.chance)
    bins = np.array_split(np.arange(len(ordered)), min(BINS, len(ordered)) or 1)
    curve = []
    for numbers in bins:
        part = [ordered[number] for number in numbers]
        if part:
            predicted = statistics.fmean(one.chance for one in part)
            curve.append(Reliability(len(part), predicted, sum(o.right for o in part) / len(part)))
    return curve


def written_at(service: EngineService, place: CodePlace) -> WrittenText:
    """Ask the model as an editor does."""
    from lsp_server.shared.contract.jobs import CompletionJob

    ask = place.request
    most = CompletionSettings().max_tokens
    several = ask.wants_several_lines
    job = CompletionJob(
        *("", ask.path),
        prefix=ask.windowed_prefix,
        suffix=ask.windowed_suffix,
        language=ask.language,
        repository=place.file.repository,
        prompt_seconds=0.0,
        max_tokens=most if several else min(most, SINGLE_LINE_TOKENS),
        single_line=not several,
        gate=NEVER,
    )
    pieces: list[LikelyPiece] = []
    steps = told(in_place(service.steps(job, lambda: False)))
    while True:
        try:
            pieces += pieces_of(next(steps)) or []
        except StopIteration as end:
            text: str = end.value.text
            return filtered(place, text, pieces)


def filtered(place: CodePlace, text: str, pieces: Sequence[LikelyPiece]) -> WrittenText:
    """What the filter leaves of a text."""
    ask = place.request
    syntax = IncrementalBrackets.of(ask.language, ask.path)
    shown = shown_text(text, ask.prefix, ask.suffix, syntax)
    return WrittenText(place, shown, aligned(pieces, text, shown))


def read_written(file: Path) -> list[WrittenText]:
    """What an earlier run wrote."""
    found = []
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        row["place"]["file"] = RepositoryFile(**row["place"]["file"])
        pieces = [LikelyPiece(*piece) for piece in row["pieces"]]
        found.append(WrittenText(CodePlace(**row["place"]), row["text"], pieces))
    return found


def as_row(written: WrittenText) -> str:
    """A line of the file that ``read_written`` reads."""
    row = asdict(written)
    row["place"]["file"] = written.place.file._asdict() | {"text": ""}
    return json.dumps(row) + "\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the bench."""
    parser.add_argument("--model", help="folder, GGUF file or id of a model")
    of_code = "repositories: folders, or .jsonl files of {path, content}"
    parser.add_argument("--code", type=Path, nargs="*", default=[], help=of_code)
    parser.add_argument("--rests", type=int, default=100, help="of each (default 100)")
    parser.add_argument("--names", type=int, default=25, help="of each, twice (default 25)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    of_written = "file of what the model wrote: read where no --code is given"
    parser.add_argument("--written", type=Path, help=of_written)
    parser.add_argument("--fit", action="store_true", help="print a calibration fitted on it")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Ask, measure, print. Raises BenchError."""
    if not args.code and args.written is None:
        raise BenchError("give --code to ask the model at, or --written of an earlier run")
    written = _asked(args) if args.code else read_written(args.written)
    examples = list(judged(written))
    gates = {name: figures_of(written, least) for name, least in THRESHOLDS.items()}
    document: dict[str, Any] = {
        "places": Counter(one.place.kind for one in written),
        "model": args.model,
        "gates": {name: figures._asdict() for name, figures in gates.items()},
        "reliability": [one._asdict() for one in reliability(examples)],
    }
    if args.fit:
        document["fitted"] = {
            kind: fitted([one for one in examples if one.kind == kind]) for kind in _CALIBRATIONS
        }
    if args.json:
        write_json(args.json, document)
    else:
        _print(document, gates)
    return 0


def _asked(args: argparse.Namespace) -> list[WrittenText]:
    from lsp_server.engine.service import EngineService

    if min(args.rests, args.names) < 0:
        raise BenchError("give --rests and --names of 0 or more")
    places = [
        place
        for root in args.code
        for place in places_of(
            list(files_of(root)), args.rests, args.names, random.Random(f"{args.seed} {root.name}")
        )
    ]
    service = EngineService(
        EngineOptions(path=args.model or "", common=False, threads=args.threads)
    )
    written = []
    try:
        for place in places:
            # Where nothing is asked unasked, nothing is shown.
            is_asked = is_place(place.request)
            written.append(written_at(service, place) if is_asked else WrittenText(place, "", []))
    finally:
        service.close()
    if args.written is not None:
        args.written.write_text("".join(map(as_row, written)), "utf-8")
    return written


def _print(document: dict[str, Any], gates: dict[str, GateFigures]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=120)
    columns = ("gate", "shown", "right", "95 %", "whole lines", "Tabs", "at ends", "in lines")
    table = Table(
        *columns, title=", ".join(f"{n} {kind}" for kind, n in document["places"].items())
    )
    for name, one in gates.items():
        low, high = one.interval
        table.add_row(
            *(name, f"{one.shown:.1%}", f"{one.right:.1%}", f"{low:.0%} to {high:.0%}"),
            *(f"{one.whole:.1%}", f"{one.tabs:g}", f"{one.at_ends:.1%}", f"{one.in_lines:.1%}"),
        )
    console.print(table)
    curve = Table("texts", "predicted", "observed", title="right to the end")
    for row in document["reliability"]:
        curve.add_row(str(row["texts"]), f"{row['predicted']:.2f}", f"{row['observed']:.2f}")
    console.print(curve)
    for kind, calibration in document.get("fitted", {}).items():
        console.print(kind, calibration)
