"""What is compiled for a machine at the first start, in parts that processes of their own may
compile at the same time.

``python -m accel.precompile PART FOLDER DTYPE``, with the folder of a model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel import infilling
from accel.drafting.copy import kernels as copy_kernels
from accel.drafting.retrieval import kernels as retrieval_kernels
from accel.models.cpu import forward
from accel.models.device import is_on_cpu
from accel.native.numba_cache import is_kept


def missing_parts(model: str | Path | None, device: str) -> list[str]:
    """Names of the parts that a model needs and that were never compiled here, see ``SECONDS``.

    Its forward is one of them for the embedded model alone: others are large, or may have none.
    Raises InvalidRequest for a device that is not here.
    """
    parts: dict[str, Any] = {
        "retrieval": retrieval_kernels.draft_in,
        "edits": copy_kernels.draft_in,
    }
    if model is None and _is_cpu(device):
        parts["forward"] = forward.forward
    return [name for name, function in parts.items() if not is_kept(function)]


def _is_cpu(device: str) -> bool:
    if is_on_cpu(device):
        return True
    # Its import takes most of a start.
    from accel.models.torch_registry import device_of

    return device_of(device).type == "cpu"


def _compile_forward(folder: Path, dtype: str) -> None:
    import numpy as np

    from accel.engine import Engine
    from accel.models.cpu.safetensors_model import open_folder
    from accel.planning.cost_model import ForwardCosts
    from accel.planning.planner import Planner
    from accel.text.tokenizer import Tokenizer

    model = open_folder(folder, dtype)
    assert model is not None, "another model than the embedded one"
    costs = ForwardCosts([512], [1, 64], np.array([[1e-3, 4e-3]]))
    tokenizer = Tokenizer.from_folder(folder)
    Engine(model, tokenizer, Planner(costs), name=str(folder), threads=1).preload()
    # The first request asks for these.
    forward.steps_of(1, 1, 0, False)
    infilling.warm_up()


def _compile_retrieval(_folder: Path, _dtype: str) -> None:
    from accel.drafting.retrieval import drafter

    drafter.warm_up()


def _compile_edits(_folder: Path, _dtype: str) -> None:
    from accel.drafting.copy import drafter

    drafter.warm_up()


_COMPILE: dict[str, Callable[[Path, str], None]] = {
    "forward": _compile_forward,
    "retrieval": _compile_retrieval,
    "edits": _compile_edits,
}

SECONDS = {"forward": 18.0, "retrieval": 17.0, "edits": 13.0}
"""About how long a core takes for a part."""


def main() -> None:
    """Compile one part."""
    name, folder, dtype = sys.argv[1:]
    _COMPILE[name](Path(folder), dtype)


if __name__ == "__main__":
    main()
