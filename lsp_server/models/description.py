"""Describes a model from its header alone. Loads no torch."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path

from accel.errors import ModelError
from accel.model_file import ModelFile, model_file
from accel.model_path import weights_files
from accel.models.file_identity import sample

_MARKED = 1 << 18
"""Bytes at the start and the end of a file by which it is known again."""
_NEXT_EDITS = re.compile(r"zeta|sweep-next-edit|instinct", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Description:
    """A model, whatever its place.

    bits: of a weight, on average; does: of ``fim`` (fills in the middle), ``left`` (goes on from
    the left), ``edit`` (has a chat template), ``next-edit``; kv_bytes: of one token, in 16 bits;
    content: the same for the same bytes, and for some others; problem: why it cannot be opened,
    empty where it can.
    """

    family: str = ""
    parameters: int = 0
    bits: float = 0.0
    nbytes: int = 0
    context_tokens: int = 0
    licence: str = ""
    does: tuple[str, ...] = ()
    kv_bytes: int = 0
    content: str = ""
    problem: str = ""


def describe(path: Path) -> Description:
    """What stands at ``path``: a GGUF file or a folder. What cannot be opened has a problem."""
    problem = ""
    try:
        found = model_file(path)
        try:
            found.check()
        except ModelError as error:
            problem = str(error)
        return replace(_of(found), problem=problem)
    except (ModelError, OSError, ValueError) as error:
        return Description(nbytes=_size(path), problem=problem or str(error))


def _of(found: ModelFile) -> Description:
    parameters, nbytes = found.parameters, found.nbytes
    does = {
        "fim": found.fills,
        "left": True,
        "edit": found.has_template,
        "next-edit": _NEXT_EDITS.search(found.title) is not None,
    }
    return Description(
        family=found.family,
        parameters=parameters,
        bits=round(8 * nbytes / parameters, 1) if parameters else 0.0,
        nbytes=nbytes,
        context_tokens=found.context_tokens,
        licence=found.licence,
        does=tuple(name for name, can in does.items() if can),
        kv_bytes=found.token_bytes("bf16", "f16"),
        content=_content(found.files),
    )


def _content(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(sample(stream).encode())
            stream.seek(0)
            digest.update(stream.read(_MARKED))
            stream.seek(max(0, file.stat().st_size - _MARKED))
            digest.update(stream.read(_MARKED))
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return sum(file.stat().st_size for file in weights_files(path))
    except (OSError, ModelError):
        return 0
