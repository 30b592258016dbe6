"""What is compiled for a machine at the first start, in parts that processes of their own may
compile at the same time.

``python -m accel.compiling PART FOLDER DTYPE``, with the folder of a model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from accel import speculator as speculators
from accel.compiled_llama import CompiledLlama
from accel.compiled_steps import plain_steps_in, steps_in
from accel.engine import Engine, device_of
from accel.llama_module import read_llama
from accel.mask_tokens import sha256_of_base
from accel.opening import DTYPES, give_drafting
from accel.planner import Planner
from accel.profile import Costs
from accel.sources import asking, copy_room, default_drafter, mixture_room
from accel.sources.compiled import is_kept
from accel.tokenizer import Tokenizer

_COSTS = Costs([512], [1, 64], np.array([[2e-4, 8e-4]]))
"""Of a model that makes several steps at a time. Nothing is measured while others compile."""


def missing_parts(model: str | Path | None, device: str) -> list[str]:
    """Names of the parts that a model needs and that were never compiled here, see ``SECONDS``.

    Its forward is one of them for the embedded model alone: others are large, or may have none.
    Raises InvalidRequest for a device that is not here.
    """
    parts: dict[str, Any] = {"retrieval": mixture_room.draft_in, "edits": copy_room.draft_in}
    if model is None and device_of(device).type == "cpu":
        parts |= {"forward": plain_steps_in, "speculator": asking.ask_in, "steps": steps_in}
    return [name for name, function in parts.items() if not is_kept(function)]


def _module(folder: Path, dtype: str) -> Any:
    found = read_llama(folder, DTYPES[dtype])
    assert found is not None, "another model than the embedded one"
    return found


def _engine(folder: Path, dtype: str) -> Engine:
    """An engine on the compiled forward that was never measured."""
    module = _module(folder, dtype)
    model = CompiledLlama.from_module(module)
    assert model is not None, "a model that has no compiled forward"
    give_drafting(model, module, folder)
    return Engine(
        model,
        Tokenizer.from_folder(folder),
        Planner(_COSTS),
        name=str(folder),
        end_tokens=frozenset(),
        threads=1,
    )


def _compile_forward(folder: Path, dtype: str) -> None:
    _engine(folder, dtype).warm_up()


def _compile_steps(folder: Path, dtype: str) -> None:
    engine = _engine(folder, dtype)
    engine.take_a_step()
    speculator = engine.model.speculator
    engine.warm_up(default_drafter(engine.tokenizer, speculator=speculator))


def _compile_retrieval(_folder: Path, _dtype: str) -> None:
    from accel.sources import mixture

    mixture.warm_up()


def _compile_speculator(folder: Path, dtype: str) -> None:
    from accel.sources import speculating_mixture

    embeddings = _module(folder, dtype).model.embed_tokens.weight.data
    read = speculators.read_speculator(folder, embeddings, sha256_of_base(folder))
    speculating_mixture.warm_up(read)


def _compile_edits(_folder: Path, _dtype: str) -> None:
    from accel.sources import reuse

    reuse.warm_up()


_COMPILE: dict[str, Callable[[Path, str], None]] = {
    "forward": _compile_forward,
    "speculator": _compile_speculator,
    "retrieval": _compile_retrieval,
    "edits": _compile_edits,
    "steps": _compile_steps,
}

SECONDS = {"forward": 41.0, "speculator": 32.0, "retrieval": 26.0, "steps": 14.0, "edits": 9.0}
"""About how long a core takes for a part and for what waits for it."""

STEPS_CALL = frozenset({"forward", "speculator", "retrieval"})
"""Parts that the steps call."""


def main() -> None:
    """Compile one part."""
    name, folder, dtype = sys.argv[1:]
    _COMPILE[name](Path(folder), dtype)


if __name__ == "__main__":
    main()
