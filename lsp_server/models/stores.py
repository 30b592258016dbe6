"""Finds the folders where other programs store models on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from accel.files.model_path import snapshots_of
from lsp_server.models.fetched import models_folder
from operating_system.system import is_macos, is_windows

FOLDERS = "REDRAFT_MODELS"
"""Environment variable: further folders with models, separated as in PATH."""
DEEPEST = 6
"""Folders below a store in which models are looked for."""
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_ENDING = ".gguf"
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})")
_BESIDE_MODELS = re.compile(r"(?:^|[-_.])(?:mmproj|imatrix)(?:[-_.]|$)", re.IGNORECASE)
_REVISION = 8
"""Letters of a snapshot's name that are shown."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be a model. name: its name in the store; path: a GGUF file, or a folder with
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


def is_beside_a_model(name: str) -> bool:
    """Return True if a GGUF file of this name is a vision projector or importance matrix."""
    return _BESIDE_MODELS.search(name) is not None


def _hub_cache() -> Path:
    """Source: ``huggingface_hub.constants``, which takes long to import."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if value := os.environ.get(name):
            return Path(value).expanduser()
    if value := os.environ.get("HF_HOME"):
        return Path(value).expanduser() / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "huggingface" / "hub"


def _llama_cpp_cache() -> Path:
    if value := os.environ.get("LLAMA_CACHE"):
        return Path(value).expanduser()
    if is_macos():
        return Path.home() / "Library" / "Caches" / "llama.cpp"
    if is_windows():
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "llama.cpp"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llama.cpp"


def _lm_studio_folders() -> list[Path]:
    """In its home, which a file beside the usual one names where it was moved, and where its
    settings say."""
    user = Path.home()
    homes = [user / ".lmstudio", user / ".cache" / "lm-studio"]
    with contextlib.suppress(OSError, ValueError):
        moved = (user / ".lmstudio-home-pointer").read_text("utf-8").strip()
        homes += [Path(moved)] if os.path.isabs(moved) else []
    folders = [home / "models" for home in homes]
    for home in homes:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            chosen = json.loads((home / "settings.json").read_text("utf-8-sig"))["downloadsFolder"]
            folders += [Path(chosen)] if os.path.isabs(chosen) else []
    return list(dict.fromkeys(folders))


def _ollama_folders() -> list[Path]:
    if value := os.environ.get("OLLAMA_MODELS"):
        return [Path(value).expanduser()]
    shared = "/usr/share/ollama/.ollama/models"
    return [Path.home() / ".ollama" / "models", *([] if is_windows() else [Path(shared)])]


def _in_hub_cache(cache: Path) -> Iterator[Candidate]:
    """Yield every snapshot of every model: the newest may hold a card alone, where older ones hold
    the weights. What an older one has under a name of a newer one is called NAME@REVISION."""
    for model in sorted(_entries(cache)):
        kind, *words = model.name.split("--")
        if kind != "models" or not words:
            continue
        name, commits = "/".join(words), dict[str, str]()
        for snapshot in snapshots_of(model):
            for candidate in _below(snapshot, "Hugging Face"):
                inside = candidate.path.relative_to(snapshot).as_posix()
                label = name if inside == "." else f"{name}/{_without_ending(inside)}"
                real = os.path.realpath(candidate.path)
                if commits.setdefault(label, real) == real:
                    yield Candidate(label, candidate.path, candidate.source)
                else:
                    dated = f"{label}@{snapshot.name[:_REVISION]}"
                    yield Candidate(dated, candidate.path, candidate.source)


def _without_ending(name: str) -> str:
    return name[: -len(_ENDING)] if name.lower().endswith(_ENDING) else name


def _in_ollama(folder: Path) -> Iterator[Candidate]:
    """Ollama keeps weights by their hash; its manifests say which are whose. Several names may be
    of one blob."""
    manifests = folder / "manifests"
    for file in sorted(path for path in _walk(manifests) if path.is_file()):
        try:
            layers = json.loads(file.read_text("utf-8"))["layers"]
            digests = [layer["digest"] for layer in layers if layer["mediaType"] == _OLLAMA_MODEL]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        name = _ollama_name(file.relative_to(manifests).parts)
        for digest in digests if name else ():
            # Older versions wrote the colon.
            spellings = str(digest).replace(":", "-"), str(digest)
            blobs = (folder / "blobs" / spelt for spelt in spellings if "/" not in spelt)
            blob_file = next((blob for blob in blobs if blob.is_file()), None)
            if blob_file is not None:
                yield Candidate(name, blob_file, "Ollama")


def _ollama_name(words: tuple[str, ...]) -> str:
    if len(words) < 3:
        return ""
    host, *owners, name, tag = words
    if host == "registry.ollama.ai":
        owners = [owner for owner in owners if owner != "library"]
    else:
        owners = [host, *owners]
    return f"{'/'.join((*owners, name))}:{tag}"


def _below(folder: Path, source: str, depth: int = DEEPEST) -> Iterator[Candidate]:
    if _is_model_folder(folder):
        yield Candidate(folder.name, folder, source)
    for path in _walk(folder, depth):
        if path.name.lower().endswith(_ENDING):
            if not path.is_dir() and not is_beside_a_model(path.name) and _is_first_part(path):
                yield Candidate(path.stem, path, source)
        elif _is_model_folder(path):
            yield Candidate(path.name, path, source)


def _is_first_part(path: Path) -> bool:
    """A split model counts once: the first part that is there."""
    match = _PART.fullmatch(path.stem)
    if match is None or int(match["number"]) <= 1:
        return True
    stem, count = match["stem"], match["count"]
    earlier = (f"{stem}-{number:05}-of-{count}" for number in range(1, int(match["number"])))
    return not any(path.with_name(f"{name}{path.suffix}").exists() for name in earlier)


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
