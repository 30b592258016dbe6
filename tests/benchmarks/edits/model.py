"""Edits by a real model: every method decodes the same prompts, in turn, to the model's end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import TokenArray
from accel.drafting.base import ContinuationIndex, DraftRequest
from accel.execution.statistics import Statistics
from accel.text.prompts import Prompt, edit_prompt
from accel.verification.sampling import Sampling
from lsp_server.engine.garbage import settle
from lsp_server.shared.contract.jobs import EditJob
from lsp_server.shared.errors import EditRefused
from tests.benchmarks.cases import EditCase
from tests.benchmarks.completion.model import same_text
from tests.benchmarks.edits.answers import served_text
from tests.benchmarks.edits.cases import reuse_bin, reuse_rate
from tests.benchmarks.edits.methods import EditMethod
from tests.benchmarks.measurement import Measurement, similarity
from tests.benchmarks.methods import PLAIN, tell_files
from tests.benchmarks.peers.hf_generate import HfGenerate, Mode, set_threads
from tests.benchmarks.planners import frozen
from tests.benchmarks.tolerance import Tolerance

if TYPE_CHECKING:
    from tests.benchmarks.gguf_peers import PeerDecoding

WARM_UP_TOKENS = 8


@dataclass(frozen=True, slots=True)
class EditTask:
    """One case as every decoder is given it."""

    prompt: Prompt
    index: ContinuationIndex | None
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Edited:
    """Tokens without the end token, int32 [n], their text, and what they cost."""

    tokens: TokenArray
    text: str
    statistics: Statistics


class EditDecoder(Protocol):
    """A method on a loaded model."""

    def __call__(self, task: EditTask) -> Edited:
        """Decode the task to its end."""
        ...


class EngineEdits:
    """Our engine with a drafter, on a session of its own for every edit."""

    def __init__(
        self, engine: Engine, method: EditMethod, *, max_nodes: int, sampling: Sampling
    ) -> None:
        self._engine = engine
        self._method = method
        self._max_nodes = max_nodes
        self._sampling = sampling

    def __call__(self, task: EditTask) -> Edited:
        """Decode with a drafter that has seen no other edit."""
        set_threads(self._engine.threads)
        drafter = self._method.make()
        if drafter is not None:
            tell_files(drafter, {})
        request = GenerationRequest(
            prompt=task.prompt.tokens,
            max_tokens=task.max_tokens,
            drafter=drafter,
            draft_request=DraftRequest(
                task.prompt.text,
                original=task.prompt.original_tokens,
                index=task.index,
                model_prompt=task.prompt.tokens,
            ),
            sampling=self._sampling,
            stop_tokens=task.prompt.stop_tokens,
            max_nodes=self._max_nodes,
            plan=self._method.plan,
            relaxed=self._method.relaxed,
        )
        generation = self._engine.generate(request).finish()
        return Edited(generation.tokens, generation.text, generation.statistics)


class HfEdits:
    """transformers' ``generate``."""

    def __init__(self, peer: HfGenerate, mode: Mode, engine: Engine, sampling: Sampling) -> None:
        """The end tokens are those of our ``engine``."""
        self._peer = peer
        self._mode = mode
        self._engine = engine
        self._sampling = sampling

    def __call__(self, task: EditTask) -> Edited:
        """Decode to the end token."""
        result = self._peer.generate(
            task.prompt.tokens,
            mode=self._mode,
            max_tokens=task.max_tokens,
            stop_tokens=task.prompt.stop_tokens | self._engine.end_tokens,
            sampling=self._sampling,
        )
        text = self._engine.tokenizer.decode(result.tokens.tolist())
        return Edited(result.tokens, text, result.statistics)


class PeerEdits:
    """Another engine on the same GGUF file."""

    def __init__(self, decoding: PeerDecoding, engine: Engine) -> None:
        """The end tokens are those of our ``engine``."""
        self._decoding, self._engine = decoding, engine

    def __call__(self, task: EditTask) -> Edited:
        """Decode to the end token."""
        stops = task.prompt.stop_tokens | self._engine.end_tokens
        result = self._decoding.generate(task.prompt.tokens, task.max_tokens, stops)
        text = self._engine.tokenizer.decode(result.tokens.tolist())
        return Edited(result.tokens, text, result.statistics)


def decode_edits(
    cases: list[EditCase],
    decoders: dict[str, EditDecoder],
    engine: Engine,
    index: ContinuationIndex | None,
    *,
    max_tokens: int,
    group_of: Callable[[EditCase], str] | None = None,
    hf_plain: str | None = None,
    checks: Mapping[str, str | None] = MappingProxyType({}),
    tolerance: Tolerance | None = None,
    done: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Measurement, str]]:
    """Every decoder on every case, with the text it wrote; which one begins changes from case to
    case. Each begins with a few tokens that are not measured, as in ``decode_cases``. Groups are
    bins of the reuse rate of what ``plain`` wrote, unless ``group_of`` is given.

    Cases whose prompt leaves no room for an answer are left out. ``plain`` must be a decoder.
    Decoders that fail with ``tolerance`` are left out from there on.
    """
    tolerance = tolerance or Tolerance()
    warm = False
    for number, case in enumerate(cases):
        task = make_task(case, engine, index, case.instruction, max_tokens)
        if task is None:
            done()
            continue
        if not warm:
            for name in tolerance.left(decoders):
                with tolerance.of(name):
                    decoders[name](_shortened(task))
            warm = True
            settle()
        names = tolerance.left(decoders)
        turn = number % len(names)
        edited: dict[str, tuple[Edited, float]] = {}
        with frozen(engine.planner):
            for name in [*names[turn:], *names[:turn]]:
                with tolerance.of(name):
                    decoders[name](_shortened(task))
                    started = time.perf_counter()
                    edited[name] = decoders[name](task), time.perf_counter() - started
        in_order = {name: edited[name] for name in names if name in edited}
        for measurement, text in _measured(case, task, in_order, group_of):
            texts = {name: each.tokens.tolist() for name, (each, _) in edited.items()}
            name = measurement.method
            measurement.identical = same_text(texts, name, checks.get(name, PLAIN))
            measurement.identical_hf = same_text(texts, name, hf_plain)
            yield measurement, text
        done()


def _shortened(task: EditTask) -> EditTask:
    return replace(task, max_tokens=WARM_UP_TOKENS)


def make_task(
    case: EditCase,
    engine: Engine,
    index: ContinuationIndex | None,
    instruction: str,
    max_tokens: int,
) -> EditTask | None:
    """Prompt and length of a case, None when it does not fit the model's context."""
    from accel.errors import InvalidRequest

    room = engine.max_positions - max_tokens - 1
    try:
        prompt = edit_prompt(engine.tokenizer, instruction, case.before, budget=room)
    except InvalidRequest:
        return None
    return EditTask(prompt, index, max_tokens)


def _text_of(result: Edited, task: EditTask, case: EditCase) -> str:
    """What the server would offer; nothing where it would refuse."""
    job = EditJob("", case.id, case.instruction, case.before)
    try:
        return served_text(result.text, task.prompt, job)
    except EditRefused:
        return ""


def _measured(
    case: EditCase,
    task: EditTask,
    edited: dict[str, tuple[Edited, float]],
    group_of: Callable[[EditCase], str] | None,
) -> Iterator[tuple[Measurement, str]]:
    assert task.prompt.original_tokens is not None
    rate = reuse_rate(task.prompt.original_tokens, edited[PLAIN][0].tokens)
    for name, (result, wall_s) in edited.items():
        text = _text_of(result, task, case)
        measurement = Measurement(
            method=name,
            group=group_of(case) if group_of else reuse_bin(rate),
            case=case.id,
            statistics=result.statistics,
            tokens=result.tokens.tolist(),
            text_bytes=len(text.encode()),
            wall_s=wall_s,
            exact=text == case.after,
            similarity=similarity(text, case.after),
            reuse=rate,
        )
        yield measurement, text
