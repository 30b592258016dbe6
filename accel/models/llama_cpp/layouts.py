"""The structures of llama.h that we fill, as versions of the library lay them out.

A library says no version that would tell: what its functions give as defaults has to be where a
layout says. One that fits none is refused.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SPARE = ctypes.c_uint8 * 256
"""Room after a structure: a library writes its own size, and reads no more of what it is given."""

_VARIES = object()
"""A default that differs between builds."""


class Batch(ctypes.Structure):
    """``llama_batch``, the same in all versions."""

    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


TYPES: dict[str, Any] = {
    "none": None,
    "flag": ctypes.c_bool,
    "number": ctypes.c_int32,
    "whole": ctypes.c_uint32,
    "size": ctypes.c_size_t,
    "fraction": ctypes.c_float,
    "fractions": ctypes.POINTER(ctypes.c_float),
    "text": ctypes.c_char_p,
    "pointer": ctypes.c_void_p,
    "batch": Batch,
}
HEADER = json.loads(Path(__file__).with_name("llama_h.json").read_text("utf-8"))
"""Functions with the types of their result and arguments, and the fields of ``llama_model_params``
of all builds and of ``llama_context_params`` of the newest: the type and the default of each."""
_CONTEXT, _MODEL = (
    {
        name: (TYPES[kind], _VARIES if default == "varies" else default)
        for name, (kind, default) in HEADER[structure].items()
    }
    for structure in ("context", "model")
)


@dataclass(frozen=True)
class Layout:
    """A structure as builds from ``since`` on have it."""

    since: str
    structure: Any
    defaults: dict[str, Any]

    def fits(self, defaults: Any) -> bool:
        """Return whether documented defaults are where this layout has them."""
        names = [name for name, _ in self.structure._fields_ if name in self.defaults]
        return all(getattr(defaults, name) == self.defaults[name] for name in names)


def _layouts(fields: dict[str, tuple[Any, Any]], missing: dict[str, set[str]]) -> list[Layout]:
    """Return the layouts of a structure, by the fields that the builds from each on lack."""
    defaults = {name: value for name, (_, value) in fields.items() if value is not _VARIES}
    layouts = []
    for since, lacks in missing.items():
        own = [(name, kind) for name, (kind, _) in fields.items() if name not in lacks]
        body = {"_fields_": [*own, ("spare", _SPARE)]}
        structure = type(f"Parameters_{since}", (ctypes.Structure,), body)
        layouts.append(Layout(since, structure, defaults))
    return layouts


_COUNTS = "n_outputs_max_per_seq", "n_outputs_max"
_FILE_FLAGS = {"use_mmap", "use_direct_io", "use_mlock"}

CONTEXT_LAYOUTS = _layouts(
    _CONTEXT,
    {
        "b11548": set(),
        "b10715": {"moe_cache_size"},
        "b9642": {"moe_cache_size", _COUNTS[0]},
        "b9209": {"moe_cache_size", *_COUNTS},
    },
)
MODEL_LAYOUTS = _layouts(
    _MODEL,
    {
        "b10715": _FILE_FLAGS,
        "b10335": _FILE_FLAGS | {"lazy_mode"},
        "b9209": {"load_mode", "lazy_mode"},
    },
)


def fitting(layouts: list[Layout], defaults: Callable[[Any], Any]) -> Layout | None:
    """Return the one layout that fits what ``defaults`` gives when it is called with its structure;
    None where none does, or several."""
    suitable = [layout for layout in layouts if layout.fits(defaults(layout.structure))]
    return suitable[0] if len(suitable) == 1 else None
