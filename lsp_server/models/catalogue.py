"""Lists and describes every model on this machine. Their cards are cached on disk."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel.errors import ModelError
from accel.files.model_path import weights_files
from accel.models.model_file import ModelFile, model_file
from lsp_server.engine.model_paths import model_folder
from lsp_server.models.card import ModelCard
from lsp_server.models.speed import rated
from lsp_server.models.stores import Candidate, candidates
from lsp_server.shared.contract.codec import read, to_json
from lsp_server.shared.errors import RedraftError
from lsp_server.tasks.apply.formats import apply_format
from operating_system.files import read_checked, write_checked
from operating_system.folders import cache_folder

VERSION = 7
"""Of what is kept."""
_MOST_FOLDERS = 6
"""Of a path in the name of a model."""

_NEXT_EDITS = re.compile(r"zeta|sweep-next-edit|instinct", re.IGNORECASE)
"""They have the tokens to fill in the middle, and have forgotten how."""


def known_models(folders: Iterable[Path] = ()) -> list[ModelCard]:
    """Return all models, those that can be opened first. A file with several names is one model.
    Raises RedraftError if one of ``folders`` is not a folder."""
    folders = list(folders)
    for folder in folders:
        if not folder.expanduser().is_dir():
            raise RedraftError(f"{folder} is not a folder; give one with models")
    cached = _CardCache()
    models: dict[object, ModelCard] = {}
    for candidate in candidates(folders):
        card = cached.card(candidate)
        file = _file_at(candidate.path)
        models[file] = _joined(models[file], candidate) if file in models else card
    cached.save()
    named = _with_distinct_names(list(models.values()))
    return sorted(map(rated, named), key=lambda model: (bool(model.problem), model.name.lower()))


def _file_at(path: Path) -> object:
    """Return what is equal for all names of one file or folder."""
    try:
        state = path.stat()
    except OSError:
        return path
    return state.st_dev, state.st_ino


def _joined(card: ModelCard, candidate: Candidate) -> ModelCard:
    also = () if candidate.name in card.names else (candidate.name,)
    is_known = os.path.realpath(candidate.path) in map(os.path.realpath, card.paths)
    paths = () if is_known else (candidate.path,)
    return replace(card, paths=(*card.paths, *paths), also=(*card.also, *also))


def _with_distinct_names(models: list[ModelCard]) -> list[ModelCard]:
    """Return models of one name with as many of their folders' names as it takes."""
    for depth in range(1, _MOST_FOLDERS + 1):
        count = Counter(model.name for model in models)
        models = [
            replace(model, name=f"{model.paths[0].parents[depth - 1].name}/{model.name}")
            if count[model.name] > 1 and len(model.paths[0].parents) > depth
            else model
            for model in models
        ]
    return models


def model_at(path_text: str) -> ModelCard:
    """Return the model at a path, be it in a store or not. Raises RedraftError."""
    return rated(describe(model_folder(os.path.abspath(os.path.expanduser(path_text)))))


def find_model(models: list[ModelCard], query: str) -> ModelCard:
    """Return the model of a name or path, or the only one that holds it. Raises RedraftError."""
    path = os.path.expanduser(query)
    for model in models:
        if os.path.realpath(path) in map(os.path.realpath, model.paths):
            return model
    ends = f"/{query}"
    named = [model for model in models if query in model.names]
    named = named or [model for model in models if any(name.endswith(ends) for name in model.names)]
    if len(named) == 1:
        return named[0]
    if named:
        paths = ", ".join(str(model.paths[0]) for model in named)
        raise RedraftError(f"{len(named)} models here are called {query}; give a path of {paths}")
    if os.path.exists(path) or path.startswith((os.sep, ".")) or path.endswith(".gguf"):
        return model_at(query)
    similar = [
        model for model in models if any(query.lower() in name.lower() for name in model.names)
    ]
    if len(similar) == 1:
        return similar[0]
    if similar:
        names = ", ".join(model.name for model in similar[:8])
        raise RedraftError(f"{query} may be any of {names}; give the whole name")
    raise RedraftError(f"no model here is called {query}; `redraft models` lists those there are")


class _CardCache:
    """Cards by path, each with the size and time of the files that it was read from."""

    def __init__(self) -> None:
        self._file = cache_folder() / "models.json"
        self._versions = _versions()
        self._old = self._read()
        self._new: dict[str, Any] = {}

    def card(self, candidate: Candidate) -> ModelCard:
        """Return the stored card of a model, or a new one from its header if its files changed."""
        path = str(candidate.path)
        state = _state(candidate.path)
        cached = self._old.get(path)
        if cached and cached["state"] == state:
            card = read(ModelCard, cached["card"])
        else:
            card = describe(candidate.path)
            cached = {"state": state, "card": to_json(card)}
        self._new[path] = cached
        return replace(card, name=candidate.name, store=candidate.source)

    def save(self) -> None:
        if self._new == self._old:
            return
        with contextlib.suppress(OSError):
            cached = {"judged_by": self._versions, "models": self._new}
            write_checked(self._file, json.dumps(cached).encode())

    def _read(self) -> dict[str, Any]:
        cached = json.loads(read_checked(self._file) or "{}")
        return dict(cached["models"]) if cached.get("judged_by") == self._versions else {}


def _versions() -> list[Any]:
    """Return the versions that decide, beside a model's files, whether it can be opened."""
    from accel.models import torch_extra
    from accel.models.fingerprint import version_of
    from accel.models.llama_cpp.library_files import is_installed

    return [VERSION, version_of("transformers"), torch_extra.is_installed(), is_installed()]


def _state(path: Path) -> list[list[Any]]:
    from accel.files.model_path import state_of

    return [list(state) if isinstance(state, tuple) else [state] for state in state_of(path)]


def describe(path: Path) -> ModelCard:
    """Return the card of the GGUF file or folder at ``path``, or one that says what is wrong."""
    problem, name = "", path.stem if path.is_file() else path.name
    card = ModelCard(name=name, paths=(path,), store="path")
    try:
        opened = model_file(path)
        try:
            opened.check()
        except ModelError as error:
            problem = str(error)
        return replace(_from_header(card, opened), problem=problem)
    except (ModelError, OSError, ValueError) as error:
        return replace(card, nbytes=_size(path), problem=problem or str(error))


def _from_header(card: ModelCard, opened: ModelFile) -> ModelCard:
    parameters, nbytes = opened.parameters, opened.nbytes
    merges = apply_format(opened.title) is not None
    is_for_next_edits = _NEXT_EDITS.search(opened.title) is not None
    does = {
        "fim": opened.fills and not is_for_next_edits and not merges,
        "left": True,
        "edit": opened.has_template and not merges,
        "next-edit": is_for_next_edits,
        "apply": merges,
    }
    return replace(
        card,
        family=opened.family,
        parameters=parameters,
        bits=round(8 * nbytes / parameters, 1) if parameters else 0.0,
        nbytes=nbytes,
        context_tokens=opened.context_tokens,
        licence=opened.licence,
        does=tuple(name for name, can in does.items() if can),
        kv_bytes=opened.token_bytes("bf16", "f16"),
        passed_over=opened.passed_over,
    )


def _size(path: Path) -> int:
    try:
        return sum(file.stat().st_size for file in weights_files(path))
    except (OSError, ModelError):
        return 0
