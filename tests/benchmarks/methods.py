"""The drafting methods that the benches compare, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import BenchError
from tests.benchmarks.peers.gguf_engines import ENGINE_OF, ENGINES

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.drafting.base import Drafter
    from accel.text.tokenizer import Tokenizer
    from accel.verification.sampling import Sampling
    from tests.benchmarks.datastores import TokenFiles
    from tests.benchmarks.published.fastcoder import FastCoderParameters

PLAIN = "plain"

PLANNED = frozenset(["redraft"])
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
    """Where the target was loaded from."""
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
    """Folder of the draft model: the one ``given``, else ``draft`` in the target's folder; None
    where there is none. Raises accel's errors."""
    from accel.models.hub import find_model_path

    if given is not None:
        return find_model_path(given)
    beside = find_model_path(model) / "draft"
    return beside if (beside / "config.json").is_file() else None


def tell_files(drafter: Drafter | None, files: TokenFiles) -> None:
    """Give a peer that keeps a store of its own the repository of the coming request."""
    know = getattr(drafter, "know", None)
    if know is not None:
        know(files)


def fastcoder_parameters(setup: MethodSetup) -> FastCoderParameters:
    """The paper's parameters, with the skip positions of this tokenizer."""
    from tests.benchmarks.published.fastcoder import FastCoderParameters

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
    from tests.benchmarks.peers.prompt_lookup import prompt_lookup_drafter

    return prompt_lookup_drafter


def _fastcoder(setup: MethodSetup) -> MakeDrafter:
    from tests.benchmarks.published.fastcoder import FastCoderDrafter

    parameters = fastcoder_parameters(setup)
    return lambda: FastCoderDrafter(parameters)


def _rest(setup: MethodSetup) -> MakeDrafter:
    from tests.benchmarks.peers.rest import RestDrafter, RestStore

    vocabulary = setup.tokenizer.vocabulary_size
    store: RestStore = _kept(setup, "rest", lambda common: RestStore(common, vocabulary))
    return lambda: RestDrafter(store)


def _rest_rule(setup: MethodSetup) -> MakeDrafter:
    from tests.benchmarks.peers.rest_rule import RestRuleDrafter

    return RestRuleDrafter


def _suffix_decoding(setup: MethodSetup) -> MakeDrafter:
    from tests.benchmarks.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

    store: SuffixDecodingStore = _kept(setup, "suffix-decoding", SuffixDecodingStore)
    return lambda: SuffixDecodingDrafter(store)


def _suffix_decoding_path(setup: MethodSetup) -> MakeDrafter:
    from tests.benchmarks.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

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
    from accel.decoding.engine import Engine

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
    from tests.benchmarks.peers.self_speculative import SelfSpeculativeModel

    target = _target(setup, "self-speculative")
    half = SelfSpeculativeModel(setup.model, setup.draft_layers)
    draft = half.engine(target.dtype, target.threads, str(target.model.device))
    return _chains_of(draft, setup)


def _sdsat(setup: MethodSetup) -> MakeDrafter:
    """The model's own adaptive tokens, as published: one forward drafts, the next verifies."""
    from accel.drafting.sdsat import SdsatDrafter

    target = _target(setup, "sdsat")
    if not target.model.adaptive_tokens:
        raise _unavailable(
            "sdsat needs a model with adaptive tokens; make one by tests.benchmarks train adaptive"
        )
    return lambda: SdsatDrafter(target, sampling=setup.sampling)


def decoded_by(engine: str) -> Callable[[MethodSetup], MakeDrafter]:
    """Another engine decodes the GGUF file: nothing drafts in ours."""

    def build(setup: MethodSetup) -> MakeDrafter:
        ENGINES[engine].kind.check_installed()
        return lambda: None

    return build


def _chains_of(draft: Engine, setup: MethodSetup) -> MakeDrafter:
    from accel.decoding.draft_model import DraftModelDrafter
    from accel.errors import UnsupportedModel
    from tests.benchmarks.peers.self_speculative import LEAST_CONFIDENCE, MOST_TOKENS

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
    from tests.benchmarks.peers.errors import PeerUnavailable

    return PeerUnavailable(why)


def _redraft(setup: MethodSetup) -> MakeDrafter:
    """All sources, as the server has them."""
    from accel.drafting import default_drafter
    from accel.drafting.retrieval.drafter import warm_up

    warm_up()
    return lambda: default_drafter(setup.tokenizer)


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
        **{method: decoded_by(engine) for method, engine in ENGINE_OF.items()},
    }
)
DECODABLE = list(dict.fromkeys([*DRAFTERS, *HF_METHODS]))
"""Methods on a model."""
