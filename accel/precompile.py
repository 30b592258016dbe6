"""What is compiled for a machine at the first start, in parts that processes of their own may
compile at the same time.

Run as a module with PART FILE KV_TYPE, with the folder of a model, or its GGUF file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from accel import infilling
from accel.drafting.copy import kernels as copy_kernels
from accel.drafting.retrieval import kernels as retrieval_kernels
from accel.model_options import KvType
from accel.models.cpu import forward, gguf_decoder
from accel.models.cpu.quantised import product
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.device import is_on_cpu
from accel.models.gguf.file import is_gguf
from accel.verification import gumbel_sampling, sampling


def parts_of(model: str | Path, device: str, *, as_stored: bool = True) -> dict[str, Any]:
    """A compiled function of each part that a model needs, see ``SECONDS``.

    Its forward is one of them for GGUF files that are computed ``as_stored``: others are large, or
    may have none. Raises InvalidRequest for a device that is not here.
    """
    parts: dict[str, Any] = {
        "retrieval": retrieval_kernels.draft_in,
        "edits": copy_kernels.draft_in,
        "sampling": gumbel_sampling.draw,
    }
    if as_stored and is_gguf(Path(model)) and is_fast() and _is_cpu(device):
        parts["forward"] = product.multiply_packed
    return parts


def _is_cpu(device: str) -> bool:
    if is_on_cpu(device):
        return True
    # Its import takes most of a start.
    from accel.models.torch_registry import device_of

    return device_of(device).type == "cpu"


def _compile_forward(file: Path, kv_type: KvType) -> None:
    import numpy as np

    from accel.engine import Engine
    from accel.models.costs.forward_costs import ForwardCosts
    from accel.models.cpu.llama import CompiledLlama
    from accel.planning.planner import AdaptivePlanner
    from accel.text.tokenizer import Tokenizer

    # A file may be large, and may be one that another forward computes.
    decoder = gguf_decoder.read_decoder(file, layers=1)
    if decoder is None:
        return
    model = CompiledLlama(decoder, kv_type)
    costs = ForwardCosts([512], [1, 64], np.array([[1e-3, 4e-3]]))
    # Any tokenizer will do.
    tokenizer = Tokenizer('{"model": {"type": "BPE", "vocab": {}, "merges": []}}')
    Engine(model, tokenizer, AdaptivePlanner(costs), name=str(file), threads=1).preload()
    # The first request asks for these.
    forward.num_steps(1, 1, 0, False)
    infilling.warm_up()


def _compile_retrieval(_file: Path, _kv_type: KvType) -> None:
    from accel.drafting.retrieval import drafter

    drafter.warm_up()


def _compile_edits(_file: Path, _kv_type: KvType) -> None:
    from accel.drafting.copy import drafter

    drafter.warm_up()


def _compile_sampling(*_arguments: Any) -> None:
    sampling.warm_up()


_COMPILE: dict[str, Callable[[Path, KvType], None]] = {
    "forward": _compile_forward,
    "retrieval": _compile_retrieval,
    "edits": _compile_edits,
    "sampling": _compile_sampling,
}

SECONDS = {"forward": 18.0, "retrieval": 17.0, "edits": 13.0, "sampling": 11.0}
"""About how long a core takes for a part."""


def main() -> None:
    """Compile one part."""
    name, file, kv_type = sys.argv[1:]
    _COMPILE[name](Path(file), cast("KvType", kv_type))


if __name__ == "__main__":
    main()
