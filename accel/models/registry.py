"""Open a model by its path. What torch does not read is opened without it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from accel.errors import InvalidRequest
from accel.model_folder import check_folder
from accel.models.autotune import INT8, RunSettings, may_use_more, profile
from accel.models.base import KvType, Model
from accel.models.cpu.gguf_model import can_be_computed, open_file
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.device import is_on_cpu
from accel.models.fingerprint import fingerprint
from accel.models.gguf.check import is_known
from accel.models.gguf.file import is_gguf
from accel.models.hub import find_folder
from accel.models.known_folder import open_known
from accel.models.llama_cpp.options import FlashAttention, LlamaCppOptions
from accel.models.llama_cpp.places import is_installed
from accel.models.room import check_room
from accel.native.cpu_features import cores
from accel.planning.cost_model import ForwardCosts
from accel.planning.profile_store import ProfileStore
from accel.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from accel.models.llama_cpp.opening import Later, Opened

DType = Literal["auto", "fp32", "bf16", "int8"]
BackendName = Literal["auto", "own", "llama-cpp"]


@dataclass(slots=True)
class Backend:
    """A model ready for decoding, and what is known about it."""

    model: Model
    tokenizer: Tokenizer
    costs: ForwardCosts
    threads: int
    form: str
    """The rung of the ladder: compiled, static, lean, tree, chain or plain."""
    store: ProfileStore
    later: Later | None = None
    """Measures what was left for later."""


def open_backend(
    path: str | Path | None,
    *,
    dtype: DType = "auto",
    threads: int | None = None,
    device: str = "auto",
    backend: BackendName = "auto",
    kv_type: KvType = "f16",
    gpu_layers: int | None = None,
    flash_attention: FlashAttention = "auto",
    measures_later: bool = False,
    download: bool = False,
) -> Backend:
    """Open a folder, a GGUF file, or a hub id that is on this machine.

    ``dtype`` auto takes int8 for a larger model on a CPU, and a GGUF file's weights as they are
    stored, otherwise the faster of fp32 and bf16, by measurement; ``threads`` None the fastest
    number; ``backend`` auto has llama.cpp, where it is installed, compute the GGUF files that we do
    not compute as they are stored, and of others those that it computes faster; ``kv_type`` is for
    those who have it, the others keep 16 bits and say so; ``gpu_layers``, ``flash_attention``: see
    ``LlamaCppOptions``; with ``measures_later`` costs that are not known yet and take seconds to
    measure are left to ``Backend.later``. The network is used only with ``download``. Raises
    ModelNotFound, BrokenModel, UnsupportedModel, OutOfMemory or InvalidRequest.
    """
    if dtype not in get_args(DType):
        raise InvalidRequest(f"dtype {dtype!r} is unknown; give auto, fp32, bf16 or int8")
    if threads is not None and threads < 1:
        raise InvalidRequest(f"threads is {threads}; give 1 or more")
    if backend not in get_args(BackendName):
        raise InvalidRequest(f"backend {backend!r} is unknown; give auto, own or llama-cpp")
    if kv_type not in get_args(KvType):
        raise InvalidRequest(f"KV type {kv_type!r} is unknown; give f16 or int8")
    if gpu_layers is not None and gpu_layers < 0:
        raise InvalidRequest(f"gpu_layers is {gpu_layers}; give 0 or more")
    if flash_attention not in get_args(FlashAttention):
        raise InvalidRequest(
            f"flash_attention {flash_attention!r} is unknown; give auto, on or off"
        )
    layers = 0 if device == "cpu" else gpu_layers
    by_llama_cpp = LlamaCppOptions(threads or cores(), layers, flash_attention, kv_type)
    folder = find_folder(path, download=download)
    check_folder(folder, backend)
    asked = dtype, threads, device, backend, kv_type, by_llama_cpp, measures_later
    found = _open(folder, *asked)
    if found.model.kv_type != kv_type:
        found.model.notices += (
            f"keys and values stay in 16 bits: this forward ({found.form}) has no {kv_type}",
        )
    return found


def _open(
    folder: Path,
    dtype: DType,
    threads: int | None,
    device: str,
    backend: BackendName,
    kv_type: KvType,
    by_llama_cpp: LlamaCppOptions,
    measures_later: bool,
) -> Backend:
    """``open_backend`` of what ``check_folder`` has passed."""
    tokenizer, later = Tokenizer.from_folder(folder), None
    on_cpu = is_on_cpu(device)
    is_wanted = dtype == INT8 or (dtype == "auto" and is_fast())
    if is_gguf(folder) and _is_for_llama_cpp(folder, backend, dtype):
        from accel.models.llama_cpp.opening import open_by_llama_cpp

        opened = open_by_llama_cpp(folder, by_llama_cpp, measures_later=measures_later)
        return _by_llama_cpp(opened, tokenizer)
    if on_cpu:
        check_room(folder, INT8 if is_wanted else "bf16" if dtype == "auto" else dtype, kv_type)
    if on_cpu and is_wanted and is_gguf(folder) and can_be_computed(folder):
        store = ProfileStore(fingerprint(folder, "cpu"))
        model, form = open_file(folder, kv_type), "compiled"
        settings = RunSettings(INT8, threads or 1, may_use_more(threads), kv_type)
        costs = profile(model, settings, store)
        if backend == "auto" and dtype == "auto" and is_installed():
            from accel.models.llama_cpp.opening import Opened, open_where_faster

            found = open_where_faster(
                folder, costs, store, by_llama_cpp, measures_later=measures_later
            )
            if isinstance(found, Opened):
                return _by_llama_cpp(found, tokenizer)
            later = found
    elif on_cpu and (known := open_known(folder, dtype=dtype, threads=threads, kv_type=kv_type)):
        model, settings, costs, store = known
        form = "compiled"
    else:
        from accel.models.torch_registry import open_by_torch

        model, form, settings, costs, store = open_by_torch(
            folder, dtype=dtype, threads=threads, device=device, kv_type=kv_type
        )
    return Backend(model, tokenizer, costs, settings.threads, form, store, later)


def _by_llama_cpp(opened: Opened, tokenizer: Tokenizer) -> Backend:
    return Backend(
        *(opened.model, tokenizer, opened.costs, opened.threads),
        *("llama.cpp", opened.store, opened.later),
    )


def _is_for_llama_cpp(path: Path, backend: BackendName, dtype: DType) -> bool:
    """Whether a GGUF file is computed by llama.cpp."""
    if backend != "auto":
        return backend == "llama-cpp"
    if dtype != "auto" or not is_installed():
        return False
    return not (is_fast() and is_known(path))
