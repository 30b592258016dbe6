"""Open a model by its path. What torch does not read is opened without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accel import torch_extra
from accel.errors import UnsupportedModel
from accel.files.memory_fit import check_fits
from accel.model_options import ModelOptions, part_of
from accel.models.autotune import INT8, Later, Profile, RunSettings, may_use_more
from accel.models.base import Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.opening import open_file
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.device import is_on_cpu
from accel.models.fingerprint import fingerprint
from accel.models.hub import find_model_path
from accel.models.known_folder import open_known
from accel.models.llama_cpp.places import is_installed
from accel.models.model_file import GgufModel, ModelFile, model_file
from accel.text.tokenizer import Tokenizer
from operating_system.machine import cores

if TYPE_CHECKING:
    from accel.models.llama_cpp.opening import Opened


@dataclass(slots=True)
class Backend:
    """A model ready for decoding, its tokenizer and what its forwards cost."""

    model: Model
    tokenizer: Tokenizer
    costs: ForwardCosts
    threads: int
    execution_path: str
    """How forwards are computed: compiled, pooled, lean, tree, chain, plain or llama.cpp."""
    store: ProfileStore
    later: Later | None = None
    """Measures what was left for later."""


def open_backend(
    options: ModelOptions, *, measures_later: bool = False, download: bool = False
) -> Backend:
    """Open a folder, a GGUF file, or a hub id that is on this machine.

    ``dtype`` auto takes int8 for a larger model on a CPU, a GGUF file's weights as they are stored,
    otherwise the faster of fp32 and bf16; ``backend`` auto has llama.cpp compute the GGUF files
    that we do not, or not as fast. With ``measures_later`` costs that take seconds to measure are
    left to ``Backend.later``. The network is used only with ``download``. Raises ModelNotFound,
    BrokenModel, UnsupportedModel, OutOfMemory or InvalidRequest.
    """
    options = part_of(options, ModelOptions)
    options.check()
    folder = find_model_path(options.path or None, download=download)
    about = model_file(folder)
    about.check(options.backend)
    found = _open(about, options, measures_later)
    if found.model.kv_type != options.kv_type:
        found.model.notices += (
            f"keys and values stay in 16 bits: this forward ({found.execution_path}) has no "
            f"{options.kv_type}",
        )
    return found


def _open(about: ModelFile, options: ModelOptions, measures_later: bool) -> Backend:
    """``open_backend`` of what was checked."""
    folder = about.path
    dtype, kv_type, threads = options.dtype, options.kv_type, options.threads or None
    tokenizer = about.tokenizer
    later: Later | None = None
    on_cpu = is_on_cpu(options.device)
    has_torch = torch_extra.is_installed()
    wants_int8 = dtype == INT8 or (dtype == "auto" and (is_fast() or not has_torch))
    by_llama_cpp = replace(options, path="", threads=threads or cores())
    if options.device == "cpu":
        by_llama_cpp = replace(by_llama_cpp, gpu_layers=0)
    if isinstance(about, GgufModel) and _is_for_llama_cpp(about, options):
        from accel.models.llama_cpp.opening import open_by_llama_cpp

        opened = open_by_llama_cpp(folder, by_llama_cpp, measures_later=measures_later)
        return _by_llama_cpp(opened, tokenizer)
    if on_cpu:
        computed_in = INT8 if wants_int8 else "bf16" if dtype == "auto" else dtype
        check_fits(folder, about.size(computed_in, kv_type))
    if on_cpu and wants_int8 and isinstance(about, GgufModel) and about.has_compiled_forward:
        store = ProfileStore(fingerprint(folder, "cpu"))
        model, execution_path = open_file(folder, kv_type), "compiled"
        settings = RunSettings(INT8, threads or 1, may_use_more(threads), kv_type)
        costs, later = _costs(Profile(model, settings, store), measures_later)
        if options.backend == "auto" and dtype == "auto" and is_installed():
            from accel.models.llama_cpp.opening import Opened, open_where_faster

            found = open_where_faster(
                folder, costs, store, by_llama_cpp, measures_later=measures_later
            )
            if isinstance(found, Opened):
                return _by_llama_cpp(found, tokenizer)
            if isinstance(later, Profile):
                later.then = found
            else:
                later = found
    elif on_cpu and (known := open_known(folder, dtype=dtype, threads=threads, kv_type=kv_type)):
        model, settings, measuring, store = known
        costs, later = _costs(measuring, measures_later)
        execution_path = "compiled"
    elif not has_torch:
        raise UnsupportedModel(
            f"{folder} in {dtype} on {options.device} is computed by torch, which is not here",
            torch_extra.INSTALL,
        )
    else:
        from accel.models.torch_registry import open_by_torch

        model, execution_path, settings, costs, store = open_by_torch(
            folder, dtype=dtype, threads=threads, device=options.device, kv_type=kv_type
        )
    return Backend(model, tokenizer, costs, settings.threads, execution_path, store, later)


def _costs(measuring: Profile, measures_later: bool) -> tuple[ForwardCosts, Later | None]:
    """What forwards cost, and what goes on measuring it."""
    if measuring.is_known or measures_later:
        return measuring.costs, None if measuring.is_known else measuring
    return measuring.measure(), None


def _by_llama_cpp(opened: Opened, tokenizer: Tokenizer) -> Backend:
    return Backend(
        *(opened.model, tokenizer, opened.costs, opened.threads),
        *("llama.cpp", opened.store, opened.later),
    )


def _is_for_llama_cpp(about: GgufModel, options: ModelOptions) -> bool:
    if options.backend != "auto":
        return options.backend == "llama-cpp"
    if options.dtype != "auto" or not is_installed():
        return False
    return not (is_fast() and about.is_known)
