"""Every model on this machine, described. What was read of a file once is kept."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from lsp_server.engine.model_paths import model_folder
from lsp_server.errors import RedraftError
from lsp_server.models.description import Description, describe
from lsp_server.models.speed import Speed, speed_of
from lsp_server.models.stores import Candidate, candidates
from lsp_server.private_files import write_private

VERSION = 2
"""Of what is kept."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model and all its places. source: the first store that has it; speed: None where nothing
    is known of it."""

    name: str
    paths: tuple[Path, ...]
    source: str
    about: Description
    speed: Speed | None = None


def known_models(folders: Iterable[Path] = ()) -> list[KnownModel]:
    """All models, those that can be opened first. The same bytes in two places are one model.
    Raises RedraftError where one of ``folders`` is none."""
    folders = list(folders)
    for folder in folders:
        if not folder.expanduser().is_dir():
            raise RedraftError(f"{folder} is no folder; give one with models")
    kept = _KeptDescriptions()
    found: dict[str, KnownModel] = {}
    for candidate in candidates(folders):
        about = kept.description(candidate)
        real = os.path.realpath(candidate.path)
        key = about.content or real
        known = found.get(key)
        if known is None:
            found[key] = KnownModel(candidate.name, (candidate.path,), candidate.source, about)
        elif real not in map(os.path.realpath, known.paths):
            found[key] = replace(known, paths=(*known.paths, candidate.path))
    kept.save()
    rated = [replace(model, speed=_speed(model)) for model in found.values()]
    return sorted(rated, key=lambda model: (bool(model.about.problem), model.name.lower()))


def model_at(place: str) -> KnownModel:
    """The model at a path, be it in a store or not. Raises RedraftError."""
    path = model_folder(os.path.abspath(os.path.expanduser(place)))
    model = KnownModel(path.stem if path.is_file() else path.name, (path,), "path", describe(path))
    return replace(model, speed=_speed(model))


def _speed(model: KnownModel) -> Speed | None:
    return None if model.about.problem else speed_of(model.paths[0], model.about.nbytes)


def find_model(models: list[KnownModel], wanted: str) -> KnownModel:
    """The model of this name or path, or the only one whose name holds it. Raises RedraftError."""
    place = os.path.expanduser(wanted)
    for model in models:
        if os.path.realpath(place) in map(os.path.realpath, model.paths):
            return model
    named = [model for model in models if model.name == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        paths = ", ".join(str(model.paths[0]) for model in named)
        raise RedraftError(f"{len(named)} models here are called {wanted}; give a path of {paths}")
    if os.path.exists(place) or place.startswith((os.sep, ".")) or place.endswith(".gguf"):
        return model_at(wanted)
    similar = [model for model in models if wanted.lower() in model.name.lower()]
    if len(similar) == 1:
        return similar[0]
    if similar:
        names = ", ".join(model.name for model in similar[:8])
        raise RedraftError(f"{wanted} may be any of {names}; give the whole name")
    raise RedraftError(f"no model here is called {wanted}; `redraft models` lists those there are")


class _KeptDescriptions:
    """Descriptions by path, each with the size and time of the files that it was read from."""

    def __init__(self) -> None:
        self._file = user_cache_path("redraft") / "models.json"
        self._judged_by = _judged_by()
        self._old = self._read()
        self._new: dict[str, Any] = {}

    def description(self, candidate: Candidate) -> Description:
        """What is kept of a model, or what its header says where that changed."""
        path = str(candidate.path)
        state = _state(candidate.path)
        kept = self._old.get(path)
        if kept and kept["state"] == state:
            self._new[path] = kept
            fields = kept["about"]
            return Description(**{**fields, "does": tuple(fields["does"])})
        about = describe(candidate.path)
        self._new[path] = {"state": state, "about": asdict(about)}
        return about

    def save(self) -> None:
        """Write it where something changed; what cannot be written is read again next time."""
        if self._new == self._old:
            return
        with contextlib.suppress(OSError):
            kept = {"judged_by": self._judged_by, "models": self._new}
            write_private(self._file, json.dumps(kept))

    def _read(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._file.read_text("utf-8"))
            return dict(kept["models"]) if kept["judged_by"] == self._judged_by else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def _judged_by() -> list[Any]:
    """What decides beside its files whether a model can be opened."""
    from accel.models.llama_cpp.places import is_installed

    return [VERSION, metadata.version("transformers"), is_installed()]


def _state(path: Path) -> list[list[Any]]:
    """Names, sizes and times of the files that a description is read from."""
    from accel.model_path import state_of

    return [list(part) if isinstance(part, tuple) else [part] for part in state_of(path)]
