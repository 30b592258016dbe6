"""What ``tests.benchmarks edit`` measures: cases, methods, draft models, common code."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lsp_server.shared.errors import BenchError

if TYPE_CHECKING:
    from rich.progress import Progress

    from accel.decoding.engine import Engine
    from accel.drafting.base import ContinuationIndex
    from accel.text.tokenizer import Tokenizer
    from tests.benchmarks.cases import EditCase
    from tests.benchmarks.datastores import TokenFiles
    from tests.benchmarks.edits.methods import EditMethod
    from tests.benchmarks.tolerance import Tolerance

INSTRUCTIONS = ("descriptive", "lazy")
SAID = " said "
"""Between the id of a case and the instruction it is given, where it is given both."""


def chosen_cases(args: argparse.Namespace) -> list[EditCase]:
    """Cases of the file, or made of the repositories; each twice where both instructions are asked
    for, ``path`` then being the instruction's name. Raises BenchError where there is none."""
    from tests.benchmarks.cases import evenly_spread, load_edit_cases
    from tests.benchmarks.edits.cases import made_edits

    if args.kinds:
        return evenly_spread(made_edits(args.kinds, args.per_kind, args.seed), args.limit)
    cases = load_edit_cases(args.cases, args.limit)
    if not cases:
        raise BenchError(f"{args.cases} holds no case; give another file or a larger --limit")
    if args.instruction == "both":
        return [
            replace(said(case, how), id=f"{case.id}{SAID}{how}", path=how)
            for case in cases
            for how in INSTRUCTIONS
        ]
    return [said(case, args.instruction) for case in cases]


def said(case: EditCase, how: str) -> EditCase:
    """The case with one of its two instructions."""
    return replace(case, instruction=case.instruction_lazy) if how == "lazy" else case


def group_of(args: argparse.Namespace) -> Callable[[EditCase], str] | None:
    """What the cases are grouped by; None for bins of the reuse rate."""
    return _path if args.kinds or args.instruction == "both" else None


def _path(case: EditCase) -> str:
    return case.path


def draft_models(args: argparse.Namespace) -> dict[str, Engine]:
    """The draft models of a run on a model, by ``our``, ``base`` and ``sft``. Raises accel's
    errors."""
    from accel.decoding.engine import Engine
    from tests.benchmarks.edits.ablation import draft_folders

    folders = draft_folders(args.draft_model, args.draft_base, args.draft_sft)
    return {
        name: Engine.load(folder, dtype=args.dtype, threads=args.threads, device=args.device)
        for name, folder in folders.items()
    }


def chosen_methods(
    args: argparse.Namespace,
    names: str,
    tokenizer: Tokenizer,
    common: TokenFiles,
    drafts: dict[str, Engine],
    engine: Engine | None = None,
    tolerance: Tolerance | None = None,
) -> tuple[dict[str, EditMethod], dict[str, str]]:
    """Methods by name, and why others are missing: those in ``--skip``, and those of the default
    list, which nobody asked for by name. Raises BenchError for others that are missing; what
    cannot be built for another reason than that stands in ``tolerance``."""
    from accel.verification.sampling import Sampling
    from tests.benchmarks.edits.ablation import ablation_methods
    from tests.benchmarks.edits.methods import EditMethod, edit_methods
    from tests.benchmarks.methods import HF_METHODS, ORACLE, MethodSetup, choose
    from tests.benchmarks.peers.errors import PeerUnavailable
    from tests.benchmarks.peers.gguf_engines import ENGINE_OF, ENGINES
    from tests.benchmarks.tolerance import Tolerance

    tolerance = tolerance or Tolerance()
    draft = drafts.get("our")
    builders = {**edit_methods(draft), **ablation_methods(drafts)}
    known = [*builders, *([] if args.target == "replay" else (*HF_METHODS, ORACLE, *ENGINE_OF))]
    skipped = choose(args.skip, known, "--skip")
    sampling = Sampling(temperature=args.temperature, top_p=args.top_p, seed=args.seed)
    setup = MethodSetup(
        tokenizer, common, args.seed, engine=engine, model=args.model, sampling=sampling
    )
    made: dict[str, EditMethod] = {}
    missing: dict[str, str] = {}
    for name in choose(names, known, "--methods"):
        with tolerance.of(name):
            try:
                if name == "standard-sd" and draft is None:
                    raise PeerUnavailable(f"{name} needs a smaller model; give --draft-model DIR")
                if name in ENGINE_OF:
                    ENGINES[ENGINE_OF[name]].kind.check_installed()
                made[name] = builders[name](setup) if name in builders else EditMethod(lambda: None)
            except PeerUnavailable as error:
                if args.methods and name not in skipped:
                    raise BenchError(f"{error}; or leave it out with --skip {name}") from error
                missing[name] = str(error)
    return made, missing


def common_code(
    args: argparse.Namespace, tokenizer: Tokenizer, progress: Progress
) -> tuple[TokenFiles, ContinuationIndex | None]:
    """Common code that all methods may know, and the index of it for ours."""
    from tests.benchmarks.datastores import common_token_files
    from tests.token_files import datastore_of

    if args.common == "none":
        return {}, None
    task = progress.add_task("reading common code", total=None)
    files = common_token_files(
        tokenizer,
        Path(args.common) if args.common else None,
        lambda done, total: progress.update(task, completed=done, total=total),
    )
    progress.remove_task(task)
    return files, cast("ContinuationIndex", datastore_of({}, files).snapshot())
