"""Options of a model's computation. Loads neither NumPy nor torch."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

from accel.errors import InvalidRequest

DType = Literal["auto", "fp32", "bf16", "int8"]
BackendName = Literal["auto", "own", "llama-cpp"]
KvType = Literal["f16", "int8"]
"""Format of keys and values: 16 bits (32 where weights have 32), or eight with scales."""
FlashAttention = Literal["auto", "on", "off"]
AdaptiveTokens = Literal["off", "auto", "two-step"]
Options = TypeVar("Options", bound="ModelOptions")


def option(
    default: Any,
    doc: str,
    *,
    choices: tuple[Any, ...] = (),
    low: Any = None,
    high: Any = None,
    own: bool = False,
    secret: bool = False,
) -> Any:
    """Return a field with its documentation and the values it takes. One of the user's ``own``
    options cannot be set by a workspace; the value of a ``secret`` one is never shown. ``default``
    may be a function that makes it."""
    metadata = {
        "doc": doc,
        "choices": choices,
        "low": low,
        "high": high,
        "own": own,
        "secret": secret,
    }
    if callable(default):
        return field(default_factory=default, metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """A model and its computation. The name, default, choices and documentation of each option are
    here alone."""

    path: str = option(
        "",
        "Folder, GGUF file or id of a causal language model; empty: what was chosen with "
        "`redraft models use`.",
    )
    dtype: DType = option(
        "auto",
        "Number format of the model's weights. On a CPU `auto` means `int8` for what Redraft "
        "computes itself: a folder's weights are rounded to eight bits when they are loaded, a "
        "GGUF file's are taken as they are stored. `fp32` is exact and slower. `bf16` is computed "
        "by torch, as are models that Redraft does not compute itself: there `auto` means `fp32` "
        "on a CPU with room for it, else `bf16`.",
        choices=get_args(DType),
    )
    device: str = option("auto", "Where the model runs: `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.")
    threads: int = option(0, "Threads of the model; 0: the fastest number.", low=0, high=256)
    backend: BackendName = option(
        "auto",
        "What computes a GGUF file: Redraft's own forward, or llama.cpp, where a library of it is; "
        "`auto` leaves those to it that the own one does not know, and all where its library has "
        "a GPU.",
        choices=get_args(BackendName),
    )
    kv_type: KvType = option(
        "f16",
        "Number format of keys and values, which a model keeps of its text: 16 bits (`f16`; 32 "
        "where weights have so many), or eight, which take half the memory. Where what computes "
        "the model has no `int8`, the status says so.",
        choices=get_args(KvType),
    )
    gpu_layers: int | Literal["auto"] = option(
        "auto",
        "How many of a model's layers llama.cpp computes on a GPU, where its library has one: a "
        "number, 0 for none, or as many as have room there (`auto`).",
        low=0,
        high=1 << 16,
        own=True,
    )
    flash_attention: FlashAttention = option(
        "auto",
        "Flash attention in llama.cpp; `auto` leaves it to the library, which knows what a GPU "
        "can do.",
        choices=get_args(FlashAttention),
        own=True,
    )

    adaptive_tokens: AdaptiveTokens = option(
        "auto",
        "How completions are drafted by a model that learnt adaptive tokens (SDSAT; a file "
        "`adaptive.safetensors` in its folder, or `NAME.adaptive.safetensors` beside `NAME.gguf`): "
        "in the forward that verifies, beside what the workspace holds (auto), in a forward of "
        "their own, as the paper does (two-step), or not (off). The text is the same.",
        choices=get_args(AdaptiveTokens),
    )

    def check(self) -> None:
        """Raise InvalidRequest for a value that is none of an option's."""
        for option in fields(self):
            value, choices, low = (
                getattr(self, option.name),
                *map(option.metadata.get, ("choices", "low")),
            )
            if choices and value not in choices:
                *others, last = choices
                listed = f"{', '.join(others)} or {last}"
                raise InvalidRequest(f"{option.name} {value!r} is unknown; give {listed}")
            if low is not None and isinstance(value, int) and value < low:
                raise InvalidRequest(f"{option.name} is {value}; give {low} or more")


def part_of(options: ModelOptions, kind: type[Options]) -> Options:
    """Return the options of ``kind`` among those of a class that has more."""
    return kind(**{option.name: getattr(options, option.name) for option in fields(kind)})
