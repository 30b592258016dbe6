"""Where the time of a forward goes: what each kind of step takes, how long threads wait behind it
for the others, and the least time in which its weights can be read, all measured in one run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.base import Cache
from accel.models.cpu import llama
from accel.models.cpu.barrier import (
    await_after,
    is_end_requested,
    is_last_to_arrive,
    join,
    linger,
    open_step,
    take,
)
from accel.models.cpu.forward import _compute_output, _num_output_items
from accel.models.cpu.layers import LAYER_STEPS, compute, num_items
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.lm_head import is_finished
from accel.models.cpu.quantised import tile
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS, chosen
from accel.models.cpu.quantised.packed_layouts import PACKED_LAYOUTS
from accel.models.cpu.quantised.product import multiply_packed
from accel.models.cpu.request_table import ForwardInput, ForwardOutput
from accel.native.aligned_memory import LINE, empty
from accel.native.numba_cache import compiled
from accel.native.simd import I64, call
from lsp_server.commands.bench.forward import forward_s

KINDS = (
    *("attention norm", "queries to values", "attention", "output", "MLP norm", "gate and up"),
    *("down", "last norm", "verification", "head"),
)
"""Of steps: those of a layer, and those after the layers."""

FORWARDS = 15
"""Of a turn."""

LEAST_TURNS = 3

AHEAD = (0, 0), (4, 0), (8, 0), (16, 0), (64, 0), (64, 256), (64, 512)
"""Lines of the cache between what is read and what is fetched into the first and the second, of
which 0 is what was just read; ``tile`` has 64 and 256."""

LARGE = 1 << 30
"""Bytes of a buffer that no cache holds."""

_BYTES_AT_ONCE = 1 << 10


@intrinsic
def _now(_context: Any) -> Any:
    """What the processor has counted."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        return call(builder, "llvm.readcyclecounter", I64)

    return types.int64(), generate


@compiled()
def _timed_forward(  # type: ignore[no-untyped-def]
    tokens,
    offsets,
    requests,
    logits,
    parents,
    wanted,
    most_nodes,
    steps,
    state,
    barrier,
    thread,
    first,
    counts,
):
    """``forward.forward``, with what it counts in each step's work and in waiting behind it: int64
    [threads, steps, 2]."""
    batch = ForwardInput(tokens, offsets, requests)
    output = ForwardOutput(logits, parents, wanted, most_nodes)
    own = state.fields
    layers, last = len(own.weights.qkv), first + steps
    number = first if thread == 0 else join(barrier, last)
    while number < last:
        started = _now()
        layer, kind = (number - first) // LAYER_STEPS, (number - first) % LAYER_STEPS
        after = number - first - layers * LAYER_STEPS
        if after < 0:
            items = num_items(layer, kind, batch, own)
        else:
            items = _num_output_items(after, batch, output, own)
        item = take(barrier, thread, items)
        while item < items:
            if after < 0:
                compute(layer, kind, item, items, batch, own)
            else:
                _compute_output(after, item, items, batch, output, own)
            item = take(barrier, thread, items)
        ended = _now()
        if is_last_to_arrive(barrier):
            ends = most_nodes >= 0 and after > 1 and is_finished(own.verification)
            ends = ends or (number + 1 < last and is_end_requested(barrier))
            open_step(barrier, last if ends else number + 1)
        here = number - first
        number = await_after(barrier, number)
        counts[thread, here, 0] = ended - started
        counts[thread, here, 1] = _now() - ended
    linger(thread)


def measured(model: CompiledLlama, cache: Cache, rows: int, seconds: float) -> dict[str, Any]:
    """Of forwards of ``rows`` rows behind what a cache holds, ms, medians of turns.

    ``kinds``: by what steps do, what each thread ``computed`` and ``waited``, the least wait of any
    thread behind each step added up (``barrier``: what steps cost in which nobody is late), ``mb``
    of weights, and the least time of ``reading`` them. ``whole``: ``ms`` of a forward, and with the
    counting; GB a second of reading what no cache holds, and the model's own weights. ``ahead``: ms
    by how many lines of codes are fetched before they are read.
    """
    large = _large_buffer()
    own = [matrix.packed for matrix in model._decoder.matrices]
    forwards = {lines: _addresses(model, lines) for lines in AHEAD}
    timed, counted, plain, rates = [], [], [], [(0.0, 0.0)]
    ahead: dict[tuple[int, int], list[float]] = {lines: [] for lines in AHEAD}
    started, turns = time.perf_counter(), 0
    while turns < LEAST_TURNS or time.perf_counter() - started < seconds:
        rates.append((_bytes_per_s([large], model.threads), _bytes_per_s(own, model.threads)))
        plain += forward_s(model, cache, rows, FORWARDS + 1)[1:]
        for _ in range(FORWARDS):
            elapsed, counts = _timed(model, cache, rows)
            timed.append(elapsed)
            counted.append(counts)
        for lines, addresses in forwards.items():
            with _products_at(model, addresses):
                ahead[lines] += forward_s(model, cache, rows, FORWARDS + 1)[1:]
        turns += 1
    of_large, of_own = (max(each) / 1e9 for each in zip(*rates, strict=True))
    return {
        "kinds": _by_kinds(model, np.median(counted, 0), of_own),
        "whole": {
            "ms": 1e3 * float(np.median(plain)),
            "ms counted": 1e3 * float(np.median(timed)),
            "GB/s of memory": of_large,
            "GB/s of weights": of_own,
        },
        "ahead": {
            f"{near} and {far} lines": 1e3 * float(np.median(times))
            for (near, far), times in ahead.items()
        },
    }


def _timed(model: CompiledLlama, cache: Cache, rows: int) -> tuple[float, NDArray[np.float64]]:
    """Seconds of a forward that counts, and of each thread's steps, as ``_timed_forward``."""
    steps = len(model._weights.qkv) * LAYER_STEPS + 1 + 2 * (rows + 1)
    counts = np.zeros((model.threads, steps, 2), np.int64)

    function: Any = _timed_forward

    def forward(*arguments: Any) -> None:
        function(*arguments, counts)

    before, started = _counted(), time.perf_counter()
    with patch.object(llama, "forward", forward):
        (elapsed,) = forward_s(model, cache, rows, 1)
    return elapsed, counts * ((time.perf_counter() - started) / (_counted() - before))


def _by_kinds(
    model: CompiledLlama, of_steps: NDArray[np.float64], gb_per_s: float
) -> dict[str, dict[str, Any]]:
    weights = model._weights
    layers = len(weights.qkv)
    after = of_steps[:, layers * LAYER_STEPS :]
    of_layers = of_steps[:, : layers * LAYER_STEPS].reshape(len(of_steps), -1, LAYER_STEPS, 2)
    parts = [of_layers[:, :, kind] for kind in range(LAYER_STEPS)]
    parts += [after[:, :1], after[:, 1::2], after[:, 2::2]]
    read = {
        "queries to values": weights.qkv,
        "output": weights.output,
        "gate and up": weights.gate_up,
        "down": weights.down,
        "head": weights.head,
    }
    found: dict[str, dict[str, Any]] = {}
    for name, part in zip(KINDS, 1e3 * np.array([each.sum(1) for each in parts]), strict=True):
        computed, waited = part[:, 0], part[:, 1]
        nbytes = _bytes_of(read[name]) if name in read else 0
        found[name] = {
            "computed": " ".join(f"{time_ms:.2f}" for time_ms in computed),
            "waited": " ".join(f"{time_ms:.2f}" for time_ms in waited),
            "mb": nbytes / 1e6,
            "reading": nbytes / gb_per_s / 1e6,
        }
    for name, each in zip(KINDS, parts, strict=True):
        found[name]["barrier"] = 1e3 * float(each[..., 1].min(0).sum())
    return found


@njit(nogil=True)
def _counted() -> int:
    return _now()


def _bytes_of(matrices: NDArray[np.int64]) -> int:
    """Of quantised matrices, by their descriptors."""
    return sum(
        int(groups) * PACKED_LAYOUTS[layout].group_bytes(int(blocks))
        for _, _, blocks, groups, layout in matrices.reshape(-1, 5).tolist()
    )


@intrinsic
def _or_of(_context: Any, address: Any) -> Any:
    """All bits of some bytes, joined."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(32), 16)
        first = builder.inttoptr(arguments[0], kind.as_pointer())
        parts = [
            builder.load(builder.gep(first, [I64(place)]), align=4)
            for place in range(_BYTES_AT_ONCE // 64)
        ]
        while len(parts) > 1:
            parts = [builder.or_(*parts[at : at + 2]) for at in range(0, len(parts), 2)]
        return call(builder, "llvm.vector.reduce.or.v16i32", ir.IntType(32), parts[0])

    return types.int32(address), generate


@njit(nogil=True)
def _read(spans: NDArray[np.int64]) -> int:
    """Read some spans of memory, int64 [.., 2]: addresses, and bytes."""
    found = 0
    for span in range(len(spans)):
        for at in range(0, spans[span, 1], _BYTES_AT_ONCE):
            found |= _or_of(spans[span, 0] + at)
    return found


def _bytes_per_s(arrays: Sequence[NDArray[Any]], threads: int) -> float:
    """How fast so many threads read arrays, each its part of every array."""
    parts: list[list[tuple[int, int]]] = [[] for _ in range(threads)]
    for array in arrays:
        size = array.nbytes // threads // _BYTES_AT_ONCE * _BYTES_AT_ONCE
        for thread, part in enumerate(parts):
            part.append((array.ctypes.data + thread * size, size))
    spans = [np.array(part, np.int64) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        list(pool.map(_read, spans))
        return sum(int(each[:, 1].sum()) for each in spans) / (time.perf_counter() - started)


def _large_buffer() -> NDArray[np.uint8]:
    """Memory that no cache holds, all of it in use."""
    buffer: NDArray[np.uint8] = empty((LARGE,), np.uint8)
    buffer[:] = 1
    return buffer


_held: list[Any] = []
"""Code that was compiled here stays."""


def _matrices(model: CompiledLlama) -> list[NDArray[np.int64]]:
    weights = model._weights
    return [weights.qkv, weights.output, weights.gate_up, weights.down, weights.head]


def _addresses(model: CompiledLlama, lines: tuple[int, int]) -> dict[int, int]:
    """Products that fetch so many lines ahead, by a model's layouts, as
    ``product.address_of_product``."""
    index, addresses = list(INSTRUCTION_SETS).index(chosen()), {}
    near, far = (each * LINE for each in lines)
    with patch.object(tile, "_AHEAD", near), patch.object(tile, "_FAR_AHEAD", far):
        written: Any = multiply_packed
        product: Any = njit(nogil=True, error_model="numpy")(written.py_func)
        for layout in {int(number) for each in _matrices(model) for number in each[..., 4].flat}:
            kinds = types.literal(layout), types.literal(index), *[types.int64] * 8
            product.compile(kinds)
            code = product.overloads[kinds]
            name = code.fndesc.llvm_cfunc_wrapper_name
            addresses[layout] = code.library.get_pointer_to_function(name)
    _held.append(product)
    return addresses


@contextmanager
def _products_at(model: CompiledLlama, addresses: dict[int, int]) -> Iterator[None]:
    """Have a model compute by other products."""
    before = [matrices[..., 0].copy() for matrices in _matrices(model)]
    for matrices in _matrices(model):
        matrices[..., 0] = np.vectorize(addresses.__getitem__)(matrices[..., 4])
    try:
        yield
    finally:
        for matrices, own in zip(_matrices(model), before, strict=True):
            matrices[..., 0] = own
