"""The drafting methods that the benches compare, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.engine_process import TYPICAL_CONTEXT
from lsp_server.errors import BenchError

if TYPE_CHECKING:
    from accel.engine import Engine
    from accel.mask_tokens import MaskTokens
    from accel.sampling import Sampling
    from accel.sources.fastcoder import FastCoderParameters
    from accel.sources.protocol import Drafter
    from accel.speculator import Speculator
    from accel.tokenizer import Tokenizer
    from lsp_server.bench.datastores import TokenFiles

PLAIN = "plain"

PLANNED = frozenset(["redraft", "retrieval", "adaptive", "redraft+adaptive"])
"""Methods whose trees the planner cuts: those with calibrated probabilities. The others verify
what they draft, as published."""

OURS = PLANNED
PLAIN_DECODING = (PLAIN, "hf-generate")

ORACLE = "oracle"
"""Drafts that are always right, of real edits: no method, but what one could reach at most."""

HF_METHODS = ("hf-generate", "hf-prompt-lookup", "standard-sd")
"""Methods that transformers' own ``generate`` decodes where there is a model."""


@dataclass(frozen=True, slots=True)
class MethodSetup:
    """What the methods are built from, the same for all."""

    tokenizer: Tokenizer
    common: TokenFiles
    seed: int = 0
    engine: Engine | None = None
    """The loaded target, None in a replay."""
    model: str | None = None
    """Where the target was loaded from, None for the embedded one."""
    draft_model: Path | None = None
    """Folder of a smaller model of the same tokenizer."""
    sampling: Sampling | None = None
    """How tokens are chosen, None for greedy."""
    draft_layers: int | tuple[int, ...] | None = None
    """Layers that draft in self-speculative decoding: how many, or which; None for half."""


MakeDrafter = Callable[[], "Drafter | None"]
"""Makes a drafter that has learnt nothing yet; None means plain decoding."""

DRAFTERS: dict[str, Callable[[MethodSetup], MakeDrafter]] = {}
"""Methods that draft in our own engine. A builder raises accel's PeerUnavailable."""


def choose(names: str, known: list[str], option: str) -> list[str]:
    """Names of a comma-separated list, each once, in the order given.

    Raises BenchError where one is not ``known``.
    """
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise BenchError(f"{option} {unknown[0]}: no such method; known are {', '.join(known)}")
    return list(dict.fromkeys(chosen))


def without_hf(names: str) -> str:
    """A comma-separated list without the methods that transformers decodes."""
    return ",".join(name for name in names.split(",") if name not in HF_METHODS)


def find_draft_model(given: str | Path | None, model: str | None) -> Path | None:
    """Folder of the draft model: the one ``given``, else the one that is shipped beside the
    embedded model where that is the target; None where there is none. Raises accel's errors."""
    from accel.loading import DEFAULT_MODEL, find_folder

    if given is not None:
        return find_folder(given)
    shipped = DEFAULT_MODEL / "draft"
    return shipped if model is None and (shipped / "config.json").is_file() else None


def tell_files(drafter: Drafter | None, files: TokenFiles) -> None:
    """Give a peer that keeps a store of its own the repository of the coming request."""
    know = getattr(drafter, "know", None)
    if know is not None:
        know(files)


def fastcoder_parameters(setup: MethodSetup) -> FastCoderParameters:
    """The paper's parameters, with the skip positions of this tokenizer."""
    from accel.sources.fastcoder import FastCoderParameters

    return FastCoderParameters(skip_tokens=line_ends(setup.tokenizer), seed=setup.seed)


def line_ends(tokenizer: Tokenizer) -> frozenset[int]:
    """Tokens that end a line, with or without the indentation of the next one."""
    ends = set()
    for token, spelt in enumerate(tokenizer.byte_table):
        if b"\n" in spelt and not spelt.rsplit(b"\n", 1)[1].strip():
            ends.add(token)
    return frozenset(ends - tokenizer.special_tokens)


def _plain(setup: MethodSetup) -> MakeDrafter:
    return lambda: None


def _prompt_lookup(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.prompt_lookup import PromptLookupDrafter

    return PromptLookupDrafter


def _fastcoder(setup: MethodSetup) -> MakeDrafter:
    from accel.sources.fastcoder import FastCoderDrafter

    parameters = fastcoder_parameters(setup)
    return lambda: FastCoderDrafter(parameters)


def _rest(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.rest import RestDrafter, RestStore

    vocabulary = setup.tokenizer.vocabulary_size
    store: RestStore = _kept(setup, "rest", lambda common: RestStore(common, vocabulary))
    return lambda: RestDrafter(store)


def _rest_rule(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.rest_rule import RestRuleDrafter

    return RestRuleDrafter


def _suffix_decoding(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

    store: SuffixDecodingStore = _kept(setup, "suffix-decoding", SuffixDecodingStore)
    return lambda: SuffixDecodingDrafter(store)


def _suffix_decoding_path(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

    store: SuffixDecodingStore = _kept(setup, "suffix-decoding", SuffixDecodingStore)
    return lambda: SuffixDecodingDrafter(store, tree=False)


_STORES: dict[str, tuple[TokenFiles, Any]] = {}


def _kept(setup: MethodSetup, peer: str, build: Callable[[TokenFiles], Any]) -> Any:
    """A peer's store of the common code, built once for all benches that one process runs."""
    known = _STORES.get(peer)
    if known is None or known[0] is not setup.common:
        known = _STORES[peer] = setup.common, build(setup.common)
    return known[1]


def _draft_model(setup: MethodSetup) -> MakeDrafter:
    """Standard speculative decoding in our engine."""
    from accel.engine import Engine

    target = _target(setup, "draft-model")
    if setup.draft_model is None:
        raise _unavailable("draft-model needs a smaller model; give --draft-model DIR")
    draft = Engine.load(
        setup.draft_model,
        dtype="bf16" if target.dtype == "bf16" else "fp32",
        threads=target.threads,
        device=str(target.model.device),
    )
    return _chains_of(draft, setup)


def _self_speculative(setup: MethodSetup) -> MakeDrafter:
    """The target with some of its layers left out drafts for it."""
    from accel.peers.self_speculative import SelfSpeculativeModel

    target = _target(setup, "self-speculative")
    half = SelfSpeculativeModel(setup.model, setup.draft_layers)
    draft = half.engine(target.dtype, target.threads, str(target.model.device))
    return _chains_of(draft, setup)


def _sdsat(setup: MethodSetup) -> MakeDrafter:
    """The model's own adaptive tokens, as published: one forward drafts, the next verifies."""
    from accel.sources.sdsat import SdsatDrafter

    mask_tokens = _mask_tokens(setup, "sdsat")
    return lambda: SdsatDrafter(mask_tokens, sampling=setup.sampling)


def _adaptive(setup: MethodSetup) -> MakeDrafter:
    """The model's own adaptive tokens in one forward, and no other source."""
    from accel.sources.adaptive import AdaptiveDrafter

    mask_tokens = _mask_tokens(setup, "adaptive")
    return lambda: AdaptiveDrafter(mask_tokens)


def _mask_tokens(setup: MethodSetup, name: str) -> MaskTokens:
    found = _target(setup, name).model.mask_tokens
    if found is None or (found.sampler is None and name != "sdsat"):
        raise _unavailable(
            f"{name} needs a model with adaptive tokens; make one by redraft train adaptive"
        )
    return found


def _chains_of(draft: Engine, setup: MethodSetup) -> MakeDrafter:
    from accel.errors import UnsupportedModel
    from accel.peers.self_speculative import LEAST_CONFIDENCE, MOST_TOKENS
    from accel.sources.draft_model import DraftModelDrafter

    def make() -> DraftModelDrafter:
        return DraftModelDrafter(draft, setup.tokenizer.sha256, MOST_TOKENS, LEAST_CONFIDENCE)

    try:
        make()
    except UnsupportedModel as error:
        raise _unavailable(str(error)) from error
    return make


def _target(setup: MethodSetup, name: str) -> Engine:
    if setup.engine is None:
        raise _unavailable(f"{name} drafts with a model; use --target model")
    return setup.engine


def _unavailable(why: str) -> Exception:
    from accel.errors import PeerUnavailable

    return PeerUnavailable(why)


def _redraft(setup: MethodSetup) -> MakeDrafter:
    """All sources, as the server has them: with the model's speculator, or where it has none and a
    forward takes long with adaptive tokens."""
    engine = setup.engine
    forward_s = engine.planner.seconds(1, TYPICAL_CONTEXT) if engine else 0.0
    return _with_adaptive(setup, forward_s, engine.model.speculator if engine else None)


def _retrieval(setup: MethodSetup) -> MakeDrafter:
    """What drafts as ``redraft`` does with nothing that was trained for the model."""
    from accel.sources import default_drafter
    from accel.sources.mixture import warm_up

    warm_up()
    return lambda: default_drafter(setup.tokenizer)


def _redraft_adaptive(setup: MethodSetup) -> MakeDrafter:
    """All sources but the speculator, and adaptive tokens, however long a forward takes."""
    _mask_tokens(setup, "redraft+adaptive")
    return _with_adaptive(setup, math.inf, None)


def _with_adaptive(
    setup: MethodSetup, forward_s: float, speculator: Speculator | None
) -> MakeDrafter:
    from accel.sources import default_drafter, speculating_mixture, with_adaptive
    from accel.sources.mixture import warm_up

    warm_up()
    engine = setup.engine
    mask_tokens = engine.model.mask_tokens if engine else None
    if engine is not None and speculator is not None:
        speculating_mixture.warm_up(speculator)
        engine.warm_up(default_drafter(setup.tokenizer, speculator=speculator))
    return lambda: with_adaptive(
        default_drafter(setup.tokenizer, speculator=speculator), mask_tokens, forward_s
    )


DRAFTERS.update(
    {
        PLAIN: _plain,
        "hf-prompt-lookup": _prompt_lookup,
        "rest": _rest,
        "rest-rule": _rest_rule,
        "suffix-decoding": _suffix_decoding,
        "suffix-decoding-path": _suffix_decoding_path,
        "fastcoder": _fastcoder,
        "redraft": _redraft,
    }
)

REPLAYABLE = list(DRAFTERS)
"""Methods of a replay; prompt lookup is there by transformers' rule."""
DRAFTERS.update(
    {
        "draft-model": _draft_model,
        "self-speculative": _self_speculative,
        "sdsat": _sdsat,
        "adaptive": _adaptive,
        "retrieval": _retrieval,
        "redraft+adaptive": _redraft_adaptive,
    }
)
DECODABLE = list(dict.fromkeys([*DRAFTERS, *HF_METHODS]))
"""Methods on a model."""
