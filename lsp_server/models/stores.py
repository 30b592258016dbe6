"""Where other programs keep models on this machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lsp_server.models.fetched import models_folder

FOLDERS = "REDRAFT_MODELS"
"""Environment variable: further folders with models, separated as in PATH."""
DEEPEST = 6
"""Folders below a store in which models are looked for."""
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_LATER_PART = "-of-"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may be a model. name: what its store calls it; path: a GGUF file, or a folder with
    ``config.json``; source: the store."""

    name: str
    path: Path
    source: str


def candidates(folders: Iterable[Path] = ()) -> Iterator[Candidate]:
    """Everything that may be a model, store after store; ``folders`` are further places."""
    # Unfinished downloads lie deeper.
    yield from _below(models_folder(), "redraft", depth=0)
    yield from _in_hub_cache(_hub_cache())
    yield from _below(_llama_cpp_cache(), "llama.cpp")
    for folder in _lm_studio_folders():
        yield from _below(folder, "LM Studio")
    for folder in _ollama_folders():
        yield from _in_ollama(folder)
    named = filter(None, os.environ.get(FOLDERS, "").split(os.pathsep))
    for folder in (*folders, *map(Path, named)):
        yield from _below(folder.expanduser(), "folder")


def _hub_cache() -> Path:
    """Source: ``huggingface_hub.constants``, which takes long to import."""
    if given := os.environ.get("HF_HUB_CACHE"):
        return Path(given).expanduser()
    if given := os.environ.get("HF_HOME"):
        return Path(given).expanduser() / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "huggingface" / "hub"


def _llama_cpp_cache() -> Path:
    if given := os.environ.get("LLAMA_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "llama.cpp"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "llama.cpp"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llama.cpp"


def _lm_studio_folders() -> list[Path]:
    home = Path.home()
    return [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]


def _ollama_folders() -> list[Path]:
    if given := os.environ.get("OLLAMA_MODELS"):
        return [Path(given).expanduser()]
    shared = "/usr/share/ollama/.ollama/models"
    return [Path.home() / ".ollama" / "models", *([Path(shared)] if os.name == "posix" else [])]


def _in_hub_cache(cache: Path) -> Iterator[Candidate]:
    """The newest snapshot of every model, and the GGUF files of all."""
    for model in _entries(cache):
        kind, *parts = model.name.split("--")
        if kind != "models" or not parts:
            continue
        snapshots = sorted(_entries(model / "snapshots"), key=_changed)
        for candidate in _below(snapshots[-1], "Hugging Face") if snapshots else ():
            name = "/".join(parts)
            inside = candidate.path.relative_to(snapshots[-1]).as_posix()
            shown = name if inside == "." else f"{name}/{inside.removesuffix('.gguf')}"
            yield Candidate(shown, candidate.path, candidate.source)


def _in_ollama(folder: Path) -> Iterator[Candidate]:
    """Ollama keeps weights by their hash; its manifests say which are whose."""
    manifests = folder / "manifests"
    for file in sorted(path for path in _walk(manifests) if path.is_file()):
        try:
            layers = json.loads(file.read_text("utf-8"))["layers"]
            digests = [one["digest"] for one in layers if one["mediaType"] == _OLLAMA_MODEL]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        for digest in digests:
            blob = folder / "blobs" / str(digest).replace(":", "-")
            if "/" not in str(digest) and blob.is_file():
                owner, name, tag = ("library", *file.parts)[-3:]
                shown = f"{name}:{tag}" if owner == "library" else f"{owner}/{name}:{tag}"
                yield Candidate(shown, blob, "Ollama")


def _below(folder: Path, source: str, depth: int = DEEPEST) -> Iterator[Candidate]:
    """GGUF files, and folders with ``config.json`` and safetensors, at and below a folder."""
    if _is_model_folder(folder):
        yield Candidate(folder.name, folder, source)
    for path in _walk(folder, depth):
        if path.suffix.lower() == ".gguf":
            if _is_first_part(path):
                yield Candidate(path.stem, path, source)
        elif _is_model_folder(path):
            yield Candidate(path.name, path, source)


def _is_first_part(path: Path) -> bool:
    """A split model counts once. A projector of a model that sees is none."""
    stem = path.stem
    if stem.startswith("mmproj"):
        return False
    return _LATER_PART not in stem or stem.rpartition(_LATER_PART)[0].endswith("-00001")


def _is_model_folder(path: Path) -> bool:
    return (path / "config.json").is_file() and any(path.glob("*.safetensors"))


def _walk(folder: Path, depth: int = DEEPEST) -> Iterator[Path]:
    for entry in sorted(_entries(folder)):
        yield entry
        if depth and entry.is_dir():
            yield from _walk(entry, depth - 1)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
