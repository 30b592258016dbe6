"""Prints, as JSON, the assembly of each kernel of a forward by its name. Its process compiles for
Arm, see ``answer_as_arm``."""

from __future__ import annotations

import json

from numba import types

from accel.models.cpu import (
    attention,
    kv_quantisation,
    layers,
    lm_head,
    matmul,
    rms_norm,
)
from accel.models.cpu.quantised import activations

INT, ROWS, ROW = types.int64, types.float32[:, ::1], types.float32[::1]
STORED = {
    "float32": types.float32[:, :, ::1],
    "float16": types.uint16[:, :, ::1],
    "int8": types.int8[:, :, ::1],
}
KERNELS = {
    **{
        f"products with {name}": (matmul.multiply, (ROWS, INT, INT, kind, INT, INT, ROWS, INT))
        for name, kind in STORED.items()
    },
    "softmax": (attention.softmax_row, (ROWS, INT, INT, ROWS, INT, INT, types.float64)),
    "scores of int8": (kv_quantisation.scale_scores, (ROWS, INT, INT, ROW)),
    "probabilities of int8": (kv_quantisation.scale_probs, (ROWS, INT, INT, ROW)),
    "keys as int8": (kv_quantisation.absmax_quantise, (ROWS, INT, INT)),
    "argmax": (
        lm_head.update_argmax,
        (ROWS, INT, INT, INT, ROW, types.int32[::1]),
    ),
    "silu": (layers.silu_and_mul, (ROWS, ROWS, INT, INT, INT)),
    "norm": (rms_norm.rms_norm, (ROWS, INT, INT, ROW, types.float64, ROWS)),
    "residual": (rms_norm.add_residual, (ROWS, ROWS, INT, INT, INT)),
    "activations": (activations.quantise_rows, (ROWS, INT, types.int8[:, :, ::1])),
}


def main() -> None:
    """Compile them."""
    actual = {}
    for name, (function, kinds) in KERNELS.items():
        function.compile(kinds)
        library = function.overloads[kinds].library
        library.serialize_using_object_code()
        actual[name] = library.get_asm_str()
    print(json.dumps(actual))
