"""Completion by a real model: every method decodes the same prompts, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import TokenArray
from accel.drafting.base import ContinuationIndex, DraftRequest
from accel.execution.statistics import Statistics
from accel.text.prompts import Prompt
from accel.verification.sampling import Sampling
from lsp_server.engine.garbage import settle
from tests.benchmarks.cases import CompletionCase
from tests.benchmarks.completion.replay import PROMPT_TOKENS
from tests.benchmarks.datastores import CaseDatastores, TokenFiles
from tests.benchmarks.measurement import Measurement, similarity
from tests.benchmarks.methods import PLAIN, MakeDrafter, tell_files
from tests.benchmarks.peers.hf_generate import HfGenerate, Mode, set_threads
from tests.benchmarks.planners import frozen
from tests.benchmarks.tolerance import Tolerance

if TYPE_CHECKING:
    from accel.execution.session import Session
    from accel.text.tokenizer import Tokenizer
    from tests.benchmarks.gguf_peers import PeerDecoding

WARM_UP_TOKENS = 8


@dataclass(frozen=True, slots=True)
class CompletionTask:
    """One case as every decoder is given it."""

    case: CompletionCase
    prompt: Prompt
    draft_request: DraftRequest
    files: TokenFiles
    max_tokens: int
    """Every decoder makes as many, going on after end tokens."""
    to_its_end: bool = False
    """It makes no more than that, and ends where the model does."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Tokens without the end token, int32 [n], and what they cost."""

    tokens: TokenArray
    statistics: Statistics
    prompt_s: float = 0.0
    """Time of making prompts, where that belongs to the method."""
    prompt: Prompt | None = None
    """The last prompt, where it is another than the task's."""


class CompletionMethod(Protocol):
    """A method on a loaded model."""

    def __call__(self, task: CompletionTask) -> Decoded:
        """Decode the task to its end."""
        ...


class EngineDecoder:
    """Our engine with a drafter, on a session of its own for every task unless one is given."""

    def __init__(
        self,
        engine: Engine,
        make_drafter: MakeDrafter,
        *,
        plan: bool,
        max_nodes: int,
        sampling: Sampling,
        session: Session | None = None,
    ) -> None:
        """``session``: holds the prompt that another method has computed."""
        self._session = session
        self._engine = engine
        self._make_drafter = make_drafter
        self._plan = plan
        self._max_nodes = max_nodes
        self._sampling = sampling

    def __call__(self, task: CompletionTask) -> Decoded:
        """Decode with a drafter that has seen no other task."""
        set_threads(self._engine.threads)
        drafter = self._make_drafter()
        tell_files(drafter, task.files)
        request = GenerationRequest(
            prompt=task.prompt.tokens,
            max_tokens=task.max_tokens,
            drafter=drafter,
            draft_request=task.draft_request,
            sampling=self._sampling,
            stop_tokens=task.prompt.stop_tokens,
            max_nodes=self._max_nodes,
            plan=self._plan,
            ignore_end=not task.to_its_end,
        )
        generation = self._engine.generate(request, self._session).finish()
        generation.statistics.draft_forwards = getattr(drafter, "target_forwards", 0)
        return Decoded(generation.tokens, generation.statistics)


class HfDecoder:
    """transformers' ``generate``."""

    def __init__(self, peer: HfGenerate, mode: Mode, sampling: Sampling) -> None:
        self._peer = peer
        self._mode = mode
        self._sampling = sampling

    def __call__(self, task: CompletionTask) -> Decoded:
        """Decode past end tokens, as our engine does."""
        result = self._peer.generate(
            task.prompt.tokens,
            mode=self._mode,
            max_tokens=task.max_tokens,
            stop_tokens=task.prompt.stop_tokens if task.to_its_end else frozenset(),
            sampling=self._sampling,
        )
        return Decoded(result.tokens, result.statistics)


class PeerDecoder:
    """Another engine on the same GGUF file."""

    def __init__(self, decoding: PeerDecoding) -> None:
        self._decoding = decoding

    def __call__(self, task: CompletionTask) -> Decoded:
        """Decode past end tokens, as our engine does."""
        result = self._decoding.generate(task.prompt.tokens, task.max_tokens)
        return Decoded(result.tokens, result.statistics)


def decode_cases(
    cases: list[CompletionCase],
    decoders: Mapping[str, CompletionMethod],
    datastores: CaseDatastores,
    engine: Engine,
    *,
    stop: str,
    max_tokens: int,
    left_only: bool,
    hf_plain: str | None = None,
    checks: Mapping[str, str | None] = MappingProxyType({}),
    tolerance: Tolerance | None = None,
    done: Callable[[], None] = lambda: None,
) -> Iterator[Measurement]:
    """Every decoder on every case; which one begins changes from case to case, so that a drift of
    the machine hits all alike. Each begins with a few tokens that are not measured: the decoder
    before it has left weights of its own in the processor's caches and threads that still spin.
    ``identical`` is told against ``plain``, or against whom ``checks``
    names; ``identical_hf`` against ``hf_plain``. Decoders that fail with ``tolerance`` are left out
    from there on."""
    tolerance = tolerance or Tolerance()
    for number, case in enumerate(cases):
        task = make_task(case, datastores, engine, stop, max_tokens, left_only)
        if number == 0:
            for name in tolerance.left(decoders):
                with tolerance.of(name):
                    decoders[name](_shortened(task))
            settle()
        names = tolerance.left(decoders)
        turn = number % len(names)
        measured: dict[str, Measurement] = {}
        with frozen(engine.planner):
            for name in [*names[turn:], *names[:turn]]:
                with tolerance.of(name):
                    decoders[name](_shortened(task))
                    started = time.perf_counter()
                    decoded = decoders[name](task)
                    wall_s = time.perf_counter() - started
                    measured[name] = _measurement(
                        name, case, task, decoded, wall_s, engine.tokenizer
                    )
        texts = {name: each.tokens for name, each in measured.items()}
        for name, measurement in measured.items():
            measurement.identical = same_text(texts, name, checks.get(name, PLAIN))
            measurement.identical_hf = same_text(texts, name, hf_plain)
        yield from (measured[name] for name in names if name in measured)
        done()


def same_text(texts: dict[str, list[int]], name: str, other: str | None) -> bool | None:
    """Whether two methods gave the same tokens; None where there is no ``other``."""
    return None if other is None or other not in texts else texts[name] == texts[other]


def make_task(
    case: CompletionCase,
    datastores: CaseDatastores,
    engine: Engine,
    stop: str,
    max_tokens: int,
    left_only: bool,
) -> CompletionTask:
    """Prompt, index and length of a case.

    The prompt stops at a border between tokens, and nobody is held to the bytes behind it:
    transformers could not be.
    """
    prompt = engine.fim_prompt(
        case.prefix,
        "" if left_only else case.suffix,
        path=case.path,
        budget=prompt_budget(engine, max_tokens),
    )
    wanted = max_tokens
    if stop == "reference":
        typed = prompt.required_prefix.decode()
        wanted = min(len(engine.tokenizer.encode(typed + case.reference)), max_tokens)
    index = datastores.snapshot(case, left_only=left_only)
    return CompletionTask(
        case=case,
        prompt=prompt,
        draft_request=DraftRequest(
            prompt.text,
            prompt.suffix_tokens,
            index=cast(ContinuationIndex, index),
            workspace=case.group,
            model_prompt=prompt.tokens,
        ),
        files=datastores.files_of(case, left_only=left_only),
        max_tokens=max(wanted, 1),
        to_its_end=stop == "end",
    )


def prompt_budget(engine: Engine, max_tokens: int) -> int:
    """Tokens of a prompt after which so many fit."""
    return min(PROMPT_TOKENS, engine.max_positions - max_tokens)


def _shortened(task: CompletionTask) -> CompletionTask:
    return replace(task, max_tokens=WARM_UP_TOKENS)


def _measurement(
    name: str,
    case: CompletionCase,
    task: CompletionTask,
    decoded: Decoded,
    wall_s: float,
    tokenizer: Tokenizer,
) -> Measurement:
    prompt = decoded.prompt or task.prompt
    spelt = spelt_after(prompt, decoded.tokens, tokenizer)
    text = spelt.decode("utf-8", errors="replace")
    return Measurement(
        method=name,
        group=case.group,
        case=case.id,
        statistics=decoded.statistics,
        tokens=np.asarray(decoded.tokens).tolist(),
        text_bytes=len(spelt),
        wall_s=wall_s,
        exact=text == case.reference,
        similarity=similarity(text, case.reference),
        prompt_s=decoded.prompt_s,
    )


def spelt_after(prompt: Prompt, tokens: TokenArray, tokenizer: Tokenizer) -> bytes:
    """What ``tokens`` spell up to the first end token, without the bytes typed already."""
    ends = np.isin(tokens, list(prompt.stop_tokens))
    until = int(ends.argmax()) if ends.any() else len(tokens)
    return tokenizer.decode_bytes(tokens[:until]).removeprefix(prompt.required_prefix)
