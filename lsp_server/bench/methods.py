"""The drafting methods that the benches compare, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.errors import BenchError

if TYPE_CHECKING:
    from accel.sources.fastcoder import FastCoderParameters
    from accel.sources.protocol import Drafter
    from accel.tokenizer import Tokenizer
    from lsp_server.bench.datastores import TokenFiles

PLAIN = "plain"

PLANNED = frozenset(["redraft"])
"""Methods whose trees the planner cuts: those with calibrated probabilities. The others verify
what they draft, as published."""

HF_METHODS = ("hf-generate", "hf-prompt-lookup", "standard-sd")
"""Methods that transformers' own ``generate`` decodes where there is a model."""


@dataclass(frozen=True, slots=True)
class MethodSetup:
    """What the methods are built from, the same for all."""

    tokenizer: Tokenizer
    common: TokenFiles
    seed: int = 0


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

    store = RestStore(setup.common, setup.tokenizer.vocabulary_size)
    return lambda: RestDrafter(store)


def _rest_rule(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.rest_rule import RestRuleDrafter

    return RestRuleDrafter


def _suffix_decoding(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

    store = SuffixDecodingStore(setup.common)
    return lambda: SuffixDecodingDrafter(store)


def _suffix_decoding_path(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

    store = SuffixDecodingStore(setup.common)
    return lambda: SuffixDecodingDrafter(store, tree=False)


def _redraft(setup: MethodSetup) -> MakeDrafter:
    from accel.sources import default_drafter
    from accel.sources.mixture import warm_up

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
DECODABLE = list(dict.fromkeys([*DRAFTERS, *HF_METHODS]))
"""Methods on a model."""
