"""What a completion bench measures on: a replayed reference, or a loaded model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import BenchError
from tests.benchmarks.dtypes import OWN_DTYPES
from tests.benchmarks.measurement import REPETITION, SHORT_REPETITION

if TYPE_CHECKING:
    from rich.progress import Progress

    from accel.decoding.engine import Engine
    from accel.planning.planner import Planner
    from accel.text.tokenizer import Tokenizer
    from accel.verification.sampling import Sampling
    from tests.benchmarks.cases import CompletionCase
    from tests.benchmarks.completion.decoders import Decoders
    from tests.benchmarks.completion.model import CompletionMethod
    from tests.benchmarks.datastores import CaseDatastores, TokenFiles
    from tests.benchmarks.measurement import Measurement
    from tests.benchmarks.methods import MakeDrafter
    from tests.benchmarks.tolerance import Tolerance

REPLAY_METHODS = "plain,hf-prompt-lookup,rest-rule,fastcoder,redraft"
MODEL_METHODS = "plain,hf-generate,hf-prompt-lookup,fastcoder,redraft"
OWN_METHODS = "plain,redraft"
OWN_TOKENS = 64
"""Of a text that a model writes to its end, as many as a completion has at most."""
OPTIONS = (
    *("target", "limit", "max_nodes", "max_tokens", "stop", "left_only", "common"),
    *("temperature", "top_p", "repetition_penalty", "penalise_prompt", "threads", "shape"),
    *("repeat", "similar_bytes", "prompt", "hf_dtype", "no_hf", "draft_model", "draft_layers"),
)
"""Options that stand in the document."""


def measure_replay(
    args: argparse.Namespace, cases: list[CompletionCase], progress: Progress
) -> dict[str, Any]:
    """Return the document of a replay."""
    from accel.models.hub import find_model_path
    from accel.models.model_file import model_file
    from tests.benchmarks import report
    from tests.benchmarks.completion.replay import PROMPT_TOKENS
    from tests.benchmarks.methods import MethodSetup
    from tests.benchmarks.tolerance import Tolerance

    folder = find_model_path(args.model)
    tokenizer = model_file(folder).tokenizer
    datastores = load_datastores(args, tokenizer, progress)
    planner = _planner(args, progress) if args.shape else None
    setup = MethodSetup(tokenizer, datastores.common, args.seed)
    methods, missing = _drafters(args, args.methods or REPLAY_METHODS, setup, Tolerance())
    measurements = replayed(args, cases, methods, datastores, tokenizer, progress, planner)
    document = {
        **report.results(measurements, missing),
        **_circumstances(args, folder.name, args.dtype if args.shape else "none"),
    }
    if planner is not None:
        document["forward_ms"] = {
            rows: planner.costs.seconds(rows, PROMPT_TOKENS) * 1e3
            for rows in (1, 2, 4, 8, 16, 32, 64)
        }
    return document


def measure_model(
    args: argparse.Namespace, cases: list[CompletionCase], progress: Progress
) -> dict[str, Any]:
    """Return the document of a run with a real model."""
    from accel.decoding.engine import Engine
    from operating_system.machine import cores
    from tests.benchmarks import report
    from tests.benchmarks.completion.decoders import make_decoders
    from tests.benchmarks.gguf_peers import add_chains, with_best_chains
    from tests.benchmarks.hf_peers import HF_GENERATE
    from tests.benchmarks.methods import PLAIN, MethodSetup, find_draft_model, without_hf
    from tests.benchmarks.peers.gguf_engines import ENGINE_OF
    from tests.benchmarks.tolerance import Tolerance

    names = args.methods or (without_hf(MODEL_METHODS) if args.no_hf else MODEL_METHODS)
    if args.threads is None and ENGINE_OF.keys() & set(names.split(",")):
        # All engines get as many.
        args.threads = cores()
    engine = Engine.load(
        args.model,
        dtype=args.dtype,
        threads=args.threads,
        device=args.device,
        backend=getattr(args, "backend", "own"),
        kv_type=getattr(args, "kv_type", "f16"),
    )
    datastores = load_datastores(args, engine.tokenizer, progress)
    args.draft_model = find_draft_model(args.draft_model, args.model)
    sampling = sampling_of(args)
    setup = MethodSetup(
        engine.tokenizer,
        datastores.common,
        args.seed,
        engine=engine,
        model=args.model,
        draft_model=args.draft_model,
        sampling=sampling,
        draft_layers=draft_layers(args.draft_layers),
    )
    tolerance = Tolerance(args.skip.split(","))
    drafters, missing = _drafters(args, f"{PLAIN},{names}", setup, tolerance)
    decoders = make_decoders(args, engine, drafters, sampling)
    every: dict[str, CompletionMethod] = {**decoders.methods, **decoders.baselines}
    if args.prompt == "repocoder":
        every = _iterated(every, args, engine, datastores)
    repeated = cases * args.repeat
    try:
        measured = decoded(args, repeated, every, datastores, engine, progress, decoders, tolerance)
    finally:
        decoders.close()
    measurements = [each for each in measured if each.method not in tolerance.failed]
    compared = [each for each in measurements if each.method in decoders.methods]
    compared, chain_speeds = with_best_chains(compared)
    document = {
        **report.results(compared, missing | tolerance.failed),
        **_circumstances(args, engine.name, engine.dtype),
        **decoders.settings,
    }
    add_chains(document, chain_speeds)
    baselines = (PLAIN, HF_GENERATE, *decoders.baselines)
    plain = [each for each in measurements if each.method in baselines]
    report.add_speedups(document, plain)
    report.add_best_peer(document)
    run = SHORT_REPETITION if args.stop == "end" else REPETITION
    report.add_hardly_repeated(document, compared, plain, run)
    report.add_pairs(document, compared, PLAIN)
    if args.prompt == "repocoder":
        report.add_whole_times(document, PLAIN)
    return document


def measure_own_text(
    args: argparse.Namespace, cases: list[CompletionCase], progress: Progress
) -> dict[str, Any]:
    """Document of what the model of ``--own-text`` writes itself in the holes of the same cases, to
    its end, ``OWN_TOKENS`` at most: what a person gets, where a replay has what others wrote."""
    wanted = {
        "target": "model",
        "model": args.own_text,
        "methods": OWN_METHODS,
        "stop": "end",
        "max_tokens": min(args.max_tokens, OWN_TOKENS),
        "left_only": False,
        "no_hf": True,
        "one_dtype": True,
    }
    return measure_model(argparse.Namespace(**vars(args) | wanted), cases, progress)


def replayed(
    args: argparse.Namespace,
    cases: list[CompletionCase],
    methods: Mapping[str, MakeDrafter],
    datastores: CaseDatastores,
    tokenizer: Tokenizer,
    progress: Progress,
    planner: Planner | None = None,
) -> list[Measurement]:
    """Every method on every case, by replay as the options say."""
    from tests.benchmarks.completion.replay import replay_cases

    task = progress.add_task("replaying", total=len(cases))
    measured = replay_cases(
        cases,
        methods,
        datastores,
        tokenizer,
        max_nodes=args.max_nodes,
        max_tokens=args.max_tokens,
        left_only=args.left_only,
        planner=planner,
        done=lambda: progress.advance(task),
    )
    return list(measured)


def decoded(
    args: argparse.Namespace,
    cases: list[CompletionCase],
    decoders: Mapping[str, CompletionMethod],
    datastores: CaseDatastores,
    engine: Engine,
    progress: Progress,
    made: Decoders | None = None,
    tolerance: Tolerance | None = None,
) -> list[Measurement]:
    """Every decoder on every case, by the engine's model as the options say.

    ``made`` says whose text each has to give; without it all owe that of plain decoding.
    ``tolerance``: of decoders that may fail.
    """
    from tests.benchmarks.completion.model import decode_cases

    task = progress.add_task("decoding", total=len(cases))
    measured = decode_cases(
        cases,
        decoders,
        datastores,
        engine,
        stop=args.stop,
        max_tokens=args.max_tokens,
        left_only=args.left_only,
        hf_plain=made.hf_plain if made else None,
        checks=made.checks if made else {},
        tolerance=tolerance,
        done=lambda: progress.advance(task),
    )
    return list(measured)


def load_datastores(
    args: argparse.Namespace, tokenizer: Tokenizer, progress: Progress
) -> CaseDatastores:
    """Return datastores of the cases with the common code that ``--common`` names."""
    from tests.benchmarks.completion.sent import SentDatastores
    from tests.benchmarks.datastores import CaseDatastores, common_token_files

    def datastores(common: TokenFiles) -> CaseDatastores:
        most_bytes = getattr(args, "similar_bytes", 0)
        if most_bytes:
            return SentDatastores(tokenizer, common, most_bytes)
        return CaseDatastores(tokenizer, common)

    if args.common == "none":
        return datastores({})
    task = progress.add_task("reading common code", total=None)
    files: TokenFiles = common_token_files(
        tokenizer,
        Path(args.common) if args.common else None,
        lambda done, total: progress.update(task, completed=done, total=total),
    )
    progress.remove_task(task)
    return datastores(files)


def target_of(target: str | None, methods: str | None) -> str:
    """``--target``, and where it was left out: replay, unless a method needs a model."""
    from tests.benchmarks.methods import DECODABLE, REPLAYABLE

    wanted = {name.strip() for name in (methods or "").split(",")}
    needs_model = wanted & (set(DECODABLE) - set(REPLAYABLE))
    return target or ("model" if needs_model else "replay")


def known_methods(target: str) -> list[str]:
    """Methods of a target; the names alone, nothing is loaded."""
    from tests.benchmarks.methods import DECODABLE, REPLAYABLE

    return REPLAYABLE if target == "replay" else DECODABLE


def sampling_of(args: argparse.Namespace) -> Sampling:
    """How tokens are chosen, by the options."""
    from accel.verification.sampling import Sampling

    return Sampling(
        temperature=args.temperature,
        top_p=args.top_p,
        repetition_penalty=args.repetition_penalty,
        penalise_prompt=args.penalise_prompt,
        seed=args.seed,
    )


def draft_layers(text: str | None) -> int | tuple[int, ...] | None:
    """``3`` is how many layers, ``0,1,5`` which ones. Raises BenchError."""
    if text is None:
        return None
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise BenchError(f"--draft-layers {text} is no number and no list of them") from error
    return numbers if "," in text else numbers[0]


def _drafters(
    args: argparse.Namespace, names: str, setup: Any, tolerance: Tolerance
) -> tuple[dict[str, MakeDrafter], dict[str, str]]:
    """A maker of drafters for each method, and why methods named in ``--skip`` are missing; what
    cannot be built for another reason than that stands in ``tolerance``.

    Methods that transformers decodes draft nothing in our engine.
    """
    from tests.benchmarks.methods import DRAFTERS, PLAIN, choose
    from tests.benchmarks.peers.errors import PeerUnavailable

    known = known_methods(args.target)
    skipped = choose(args.skip, known, "--skip")
    made: dict[str, MakeDrafter] = {}
    missing: dict[str, str] = {}
    for name in choose(names, known, "--methods"):
        with tolerance.of(name):
            try:
                if name == "standard-sd" and setup.draft_model is None:
                    raise PeerUnavailable(f"{name} needs a smaller model; give --draft-model DIR")
                made[name] = DRAFTERS.get(name, DRAFTERS[PLAIN])(setup)
            except PeerUnavailable as error:
                if name not in skipped:
                    raise BenchError(f"{error}; or leave it out with --skip {name}") from error
                missing[name] = str(error)
    return made, missing


def _iterated(
    decoders: dict[str, CompletionMethod],
    args: argparse.Namespace,
    engine: Engine,
    datastores: CaseDatastores,
) -> dict[str, CompletionMethod]:
    from tests.benchmarks.completion.repocoder import Prompts, RepoCoderDecoder

    prompts = Prompts(engine, datastores, left_only=args.left_only, max_tokens=args.max_tokens)
    return {name: RepoCoderDecoder(decode, prompts) for name, decode in decoders.items()}


def _planner(args: argparse.Namespace, progress: Progress) -> Planner:
    from accel.planning.planner import AdaptivePlanner
    from tests.benchmarks.model_shapes import costs_of_shape

    if args.dtype not in OWN_DTYPES:
        raise BenchError(f"--shape is computed in {' or '.join(OWN_DTYPES)}; give --dtype one")
    task = progress.add_task(f"timing forwards of the {args.shape} shape", total=None)
    costs = costs_of_shape(args.shape, args.dtype, args.threads)
    progress.remove_task(task)
    return AdaptivePlanner(costs)


def _circumstances(args: argparse.Namespace, model: str, dtype: str) -> dict[str, Any]:
    from tests.benchmarks import report

    values = {name: getattr(args, name) for name in OPTIONS}
    if values["draft_model"] is not None:
        values["draft_model"] = Path(values["draft_model"]).name
    return {
        **report.circumstances(model=model, dtype=dtype, seed=args.seed, cases=args.cases),
        "options": values,
    }
