"""Functions compiled at the first start, in parts that several processes can compile at the same
time.

Run as a module with PART KV_TYPE and, if a GGUF file is there already, FILE. A part needs no model:
compiling takes types alone, and they are the same for every model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from accel.drafting.copy import kernels as copy_kernels
from accel.drafting.retrieval import kernels as retrieval_kernels
from accel.errors import ModelError
from accel.files.gguf.architecture import HYBRIDS
from accel.files.gguf.file import is_gguf
from accel.files.model_options import KvType
from accel.models.batch import chain_batch
from accel.models.cpu import forward, gguf_decoder
from accel.models.cpu.delta_net.forward import hybrid_forward
from accel.models.cpu.quantised import product
from accel.models.cpu.quantised.instruction_sets import chosen, is_fast, layout_of
from accel.models.cpu.quantised.packed_layouts import LAYOUTS, PackedLayout
from accel.models.device import is_on_cpu
from accel.models.model_file import model_file
from accel.native.numba_cache import is_cached
from accel.verification import gumbel_sampling


def parts_of(
    model: str | Path | None = None, device: str = "cpu", *, as_stored: bool = True
) -> dict[str, Any]:
    """Return a compiled function of each part that a model needs, see ``SECONDS``: one that was not
    compiled yet, where there is such. None for a model that is not here yet.

    Its forward is one of them for GGUF files that are computed ``as_stored``: others are large, or
    may have none.
    """
    functions: dict[str, Any] = {
        "retrieval": retrieval_kernels.draft_in,
        "edits": copy_kernels.draft_in,
        "sampling": gumbel_sampling.draw,
    }
    may_be_ours = model is None or is_gguf(Path(model))
    if as_stored and may_be_ours and is_fast() and is_on_cpu(device, is_gguf=True):
        is_hybrid = model is not None and _is_hybrid(Path(model))
        name, function = ("hybrid", hybrid_forward) if is_hybrid else ("forward", forward.forward)
        functions[name] = (
            function if is_cached(product.multiply_packed) else product.multiply_packed
        )
    return functions


def _is_hybrid(model: Path) -> bool:
    try:
        return model_file(model).family in HYBRIDS
    except ModelError:
        # Who opens it says what is wrong with it.
        return False


def _compile_forward(kv_type: KvType, file: Path | None, *, is_hybrid: bool = False) -> None:
    import numpy as np

    from accel.decoding.engine import Engine
    from accel.models.costs.forward_costs import ForwardCosts
    from accel.models.cpu.opening import compiled_model
    from accel.models.cpu.smallest_decoder import smallest_decoder, smallest_hybrid
    from accel.planning.planner import AdaptivePlanner
    from accel.text.tokenizer import Tokenizer

    layouts: set[PackedLayout] | None = None
    if file is not None:
        layouts = gguf_decoder.layouts_of(file)
        if not layouts:
            # Another forward computes it.
            return
    compile_products(layouts)
    model = compiled_model(smallest_hybrid() if is_hybrid else smallest_decoder(), kv_type)
    if is_hybrid:
        # Where a chunk ends in a tree, and as a text is written.
        model.forward(chain_batch(np.zeros(40, np.int32), 0), [cache := model.new_cache(64)])
        cache.commit(range(40))
    costs = ForwardCosts([512], [1, 64], np.array([[1e-3, 4e-3]]))
    engine = Engine(model, Tokenizer.empty(), AdaptivePlanner(costs), name="smallest", threads=1)
    engine.preload()
    # The first request asks for it.
    forward.num_steps(1, 1, 0)


def compile_products(layouts: Iterable[PackedLayout] | None = None) -> None:
    """Compile products with weights in some layouts, by default in all that the processor's
    instructions take, by their types: nothing is run."""
    for layout in map(layout_of, LAYOUTS) if layouts is None else layouts:
        product.address_of_product(layout, chosen())


_WARM_UPS = {
    "retrieval": "accel.drafting.retrieval.drafter",
    "edits": "accel.drafting.copy.drafter",
    "sampling": "accel.verification.choosing",
}
"""Modules whose ``warm_up`` compiles a part."""

SECONDS = {"forward": 18.0, "hybrid": 40.0, "retrieval": 17.0, "edits": 13.0, "sampling": 11.0}
"""About how long a core takes for a part."""


def main() -> None:
    """Compile one part."""
    name, kv_type, *file = sys.argv[1:]
    if name in _WARM_UPS:
        import_module(_WARM_UPS[name]).warm_up()
        return
    path = Path(file[0]) if file else None
    _compile_forward(cast("KvType", kv_type), path, is_hybrid=name == "hybrid")


if __name__ == "__main__":
    main()
