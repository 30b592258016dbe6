"""Open a model in the way that is right and fastest on this machine, and remember which it was."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import nn

from accel import attention, speculator
from accel.compiled_llama import CompiledLlama, can_be_compiled, pack_weights
from accel.errors import AccelError, UnsupportedModel
from accel.linear import Linear
from accel.llama import LlamaModel
from accel.llama_module import read_llama
from accel.loading import end_tokens, load_module
from accel.mask_tokens import FILE, MaskTokens, read_weights, sha256_of_base
from accel.model import Capability, Model, attention_windows
from accel.models.gguf.file import GgufFile, is_gguf
from accel.probe import Probe
from accel.processor import cores
from accel.products import product_costs
from accel.profile import Costs, look_again, measure, share
from accel.static_forward import StaticLlama
from accel.store import Store

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

LARGE = 300_000_000
"""Parameters from which dtypes are compared on one matrix instead of the whole model."""

SMALL = 100_000_000
"""Bytes up to which they are compared on the products of a compiled forward: to compile all of it
for a dtype that is not taken takes half a minute."""

PRODUCTS_S = 0.12
"""Seconds for which these are measured."""

_log = logging.getLogger(__name__)

_LADDER = ("compiled", "static", "lean", "tree", "chain", "plain")


@dataclass(slots=True)
class Opened:
    """A model ready for decoding."""

    model: Model
    end_tokens: frozenset[int]
    path: str
    """The rung of the ladder: compiled, static, lean, tree, chain or plain."""


def open_model(
    folder: Path,
    dtype: torch.dtype,
    device: torch.device,
    store: Store,
    *,
    may_share: bool = False,
) -> Opened:
    """The best rung that answers as the module itself does; the verdict is kept in ``store``.

    compiled, static, lean and tree verify trees, chain one branch, plain nothing. ``may_share``:
    a compiled forward may take a second thread. Raises BrokenModel, UnsupportedModel or
    OutOfMemory.
    """
    key = f"path/{dtype}"
    verdict = store.get(key)
    # A verdict is what a probe of this folder said: the numbers are known to be right.
    module = read_llama(folder, dtype) if verdict == "compiled" else None
    if module is None:
        module = load_module(folder, dtype, device, "eager")
    ends = end_tokens(module)
    if verdict in _LADDER:
        model = _build(verdict, module)
        if model is not None:
            give_drafting(model, module, folder)
            return Opened(model, ends, verdict)
        module = load_module(folder, dtype, device, "eager")
    probe = Probe(module)
    for rung in _LADDER:
        model, is_emptied = None, rung in ("compiled", "static", "lean")
        try:
            model = _build(rung, module)
            is_emptied = is_emptied and model is not None
            found = model is not None and probe.agrees(model, model.capability)
            if found and model is not None and rung == "compiled":
                lean = LlamaModel.from_module(load_module(folder, dtype, device, "eager"))
                found = lean is None or is_faster(model, lean, may_share=may_share)
        except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, IndexError):
            # What a foreign architecture raises on rows it cannot take is not known beforehand.
            _log.info("%s does not decode the %s way", folder, rung, exc_info=True)
            found = False
        if found:
            assert model is not None
            store.put(key, rung)
            give_drafting(model, module, folder)
            return Opened(model, ends, rung)
        if is_emptied:
            module = load_module(folder, dtype, device, "eager")
    raise UnsupportedModel(
        f"{folder}: no way to decode it with a cache gives its own answers; use another model"
    )


def _build(rung: str, module: nn.Module) -> Model | None:
    """The model of a rung, None when the module is not made for it."""
    if rung == "compiled":
        return CompiledLlama.from_module(module)
    if rung == "static":
        weight: Any = next(module.parameters())
        return StaticLlama.from_module(module) if weight.device.type == "cuda" else None
    if rung == "lean":
        return LlamaModel.from_module(module)
    if not hasattr(module, "set_attn_implementation"):
        return None
    # Its import takes most of a second.
    from accel.transformers_model import TransformersModel

    full_rows = attention_windows(module.config.get_text_config()) is not None  # type: ignore
    if rung != "plain" and not full_rows:
        return None
    switch: Any = module.set_attn_implementation
    if rung == "tree":
        switch(attention.NAME)
        return TransformersModel(module, Capability.TREE)
    switch("eager")
    return TransformersModel(module, Capability.CHAIN if rung == "chain" else Capability.PLAIN)


def give_drafting(model: Model, module: Any, folder: Path) -> None:
    """Read what was trained to draft for a model, where it lies beside its weights and the model
    has the forward for it: mask tokens and a speculator. What does not belong to these weights is
    left alone, and the log says so."""
    wants_masks = model.computes_masks and (folder / FILE).exists()
    wants_speculator = model.verifies and (folder / speculator.FILE).exists()
    if not wants_masks and not wants_speculator:
        return
    sha256 = sha256_of_base(folder)
    base, head = module.model.embed_tokens.weight.data, module.lm_head.weight.data
    try:
        if wants_masks:
            model.take_mask_tokens(MaskTokens(read_weights(folder / FILE, sha256), base, head))
    except AccelError as error:
        _log.warning("no adaptive tokens: %s", error)
    try:
        if wants_speculator:
            model.take_speculator(speculator.read_speculator(folder, base, sha256))
    except AccelError as error:
        _log.warning("no speculator: %s", error)


@dataclass(frozen=True, slots=True)
class Settings:
    """What belongs to the engine and never to a step."""

    dtype: torch.dtype
    threads: int
    may_share: bool = False
    """Whether a second thread may take half of the rows where the model has such a forward."""


def choose_settings(
    folder: Path, dtype: str, threads: int | None, device: torch.device, store: Store
) -> Settings:
    """dtype and thread count: as asked, or the fastest by a measurement that is kept."""
    if device.type != "cpu":
        return Settings(DTYPES.get(dtype, torch.bfloat16), threads or torch.get_num_threads())
    may_share = may_use_two(threads)
    counts = [threads] if threads else _thread_counts(folder)
    names = list(DTYPES) if dtype == "auto" else [dtype]
    if len(counts) == len(names) == 1:
        return Settings(DTYPES[names[0]], counts[0], may_share)
    key = f"settings/{','.join(names)}/{','.join(map(str, counts))}"
    kept = store.get(key)
    if isinstance(kept, list) and len(kept) == 2 and kept[0] in names and kept[1] in counts:
        return Settings(DTYPES[kept[0]], kept[1], may_share)
    scores: dict[tuple[str, int], float] = {}
    for name in names:
        found = _scores(folder, DTYPES[name], counts, device, store, may_share=may_share)
        scores |= {(name, count): score for count, score in found.items()}
    best = min(scores, key=scores.__getitem__)
    if all(_can_be_kept(count) for count in counts):
        store.put(key, list(best))
    return Settings(DTYPES[best[0]], best[1], may_share)


def _thread_counts(folder: Path) -> list[int]:
    """Counts worth trying. A small model leaves one core free: its threads meet dozens of times in
    a millisecond, and when another program takes a core all of them wait (2 of 2 busy cores: 290
    instead of 20 ms a forward)."""
    most = torch.get_num_threads()
    if _weight_bytes(folder) <= 2 * LARGE:
        most = max(most - 1, 1)
    return sorted({1, max(most // 2, 1), most})


def _weight_bytes(folder: Path) -> int:
    """Of weights in bf16."""
    if is_gguf(folder):
        with GgufFile(folder) as file:
            return sum(2 * prod(tensor.shape) for tensor in file.tensors.values())
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def _can_be_kept(threads: int) -> bool:
    """Whether a measurement is worth keeping: one thread is timed by its own clock, several only
    measure right while nothing else runs."""
    try:
        return threads == 1 or os.getloadavg()[0] < (os.cpu_count() or 1) + 0.5
    except (AttributeError, OSError):
        return True


def _scores(
    folder: Path,
    dtype: torch.dtype,
    counts: list[int],
    device: torch.device,
    store: Store,
    *,
    may_share: bool,
) -> dict[int, float]:
    """Seconds per expected token by thread count."""
    if _weight_bytes(folder) <= SMALL and device.type == "cpu":
        module = load_module(folder, dtype, device, "eager")
        if can_be_compiled(module):
            costs = product_costs(pack_weights(module), PRODUCTS_S)
            return dict.fromkeys(counts, _score(costs))
    before = torch.get_num_threads()
    scores = {}
    try:
        if _weight_bytes(folder) > 2 * LARGE:
            matrix = Linear(torch.zeros(4096, 4096, dtype=dtype))
            for count in counts:
                torch.set_num_threads(count)
                scores[count] = _score(_time_matrix(matrix, dtype))
        else:
            model = open_model(folder, dtype, device, store, may_share=may_share).model
            for count in counts:
                torch.set_num_threads(count)
                scores[count] = _rate(model, may_share=may_share)
    finally:
        torch.set_num_threads(before)
    return scores


def is_faster(model: Model, other: Model, *, may_share: bool) -> bool:
    """Whether a model takes no more time for a token than another form of it."""
    return _rate(model, may_share=may_share) <= _rate(other, may_share=may_share)


def _rate(model: Model, *, may_share: bool) -> float:
    """``_score`` of a model, measured in a moment, or some seconds where a forward takes long."""
    one_s = measure(model, 0.0, (1,), (512,)).seconds.min()
    budget_s = min(max(0.12, 40 * float(one_s)), 4.0)
    costs = measure(model, budget_s, (1, 8, 32), (512,))
    return _score(share(model, costs, budget_s) if may_share else costs)


def _score(costs: Costs) -> float:
    """Least seconds per token over tree sizes, with the gain that trees of repository drafts had
    in replay: 3.1 tokens per forward with 8 nodes, 4.1 with 64."""
    by_rows = costs.by_rows(costs.contexts[0], 65)
    gains = {0: 1.0, **{n: 1 + 2.1 * (n / 8) ** 0.19 for n in (4, 8, 16, 32, 64)}}
    return min(float(by_rows[nodes + 1]) / gain for nodes, gain in gains.items())


def _time_matrix(matrix: Linear, dtype: torch.dtype) -> Costs:
    rows = (1, 8, 32)
    seconds = []
    for count in rows:
        x = torch.zeros(count, 4096, dtype=dtype)
        matrix(x)
        times = []
        for _ in range(5):
            started = time.perf_counter()
            matrix(x)
            times.append(time.perf_counter() - started)
        seconds.append(min(times))
    return Costs([512], list(rows), torch.tensor([seconds], dtype=torch.float64).numpy())


def profile(model: Model, settings: Settings, store: Store) -> Costs:
    """t(T) of an opened model, measured at its first starts and kept, and again where a busy
    machine hid whether two threads pay. The model is told from how many rows on they do."""
    shares = settings.may_share and model.can_share
    key = f"costs/{settings.dtype}/{settings.threads}" + ("/shared" if shares else "")
    may_keep = _can_be_kept(settings.threads)
    costs = kept = _kept_costs(store.get(key))
    if costs is None or (costs.was_busy and _is_quiet()):
        costs = measure(model, 0.8)
        if shares:
            costs = share(model, costs, 1.5)
            costs = replace(costs, was_busy=not costs.shared_from and not _is_quiet())
    elif may_keep and costs.want_a_look:
        costs = look_again(model, costs)
    if may_keep and costs is not kept:
        store.put(key, costs.to_json())
    model.shared_from = costs.shared_from
    return costs


def _kept_costs(kept: Any) -> Costs | None:
    try:
        return Costs.from_json(kept)
    except (KeyError, TypeError, ValueError):
        return None


def may_use_two(threads: int | None) -> bool:
    """Whether a forward may take a second thread where so many were asked for (None: whatever is
    fast)."""
    return threads != 1 and cores() > 1


def _is_quiet() -> bool:
    """Whether a core was free most of the last minute."""
    try:
        return os.getloadavg()[0] < (os.cpu_count() or 1) - 0.5
    except (AttributeError, OSError):
        return True
