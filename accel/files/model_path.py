"""Paths and ids of models as users write them. Loads no torch."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from accel.errors import (
    HOW_TO_CHOOSE,
    NO_MODEL,
    BrokenModel,
    ModelError,
    ModelNotFound,
    UnsupportedModel,
)
from accel.files.gguf.file import is_gguf, parts_of
from operating_system.system import is_windows

CHECK_PATH = "give a GGUF file, or a folder with config.json and *.safetensors"

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".xz", ".bz2", ".7z", ".zst")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def find_model_path(model: str | Path | None) -> Path:
    """Folder of a model: a folder, or that of a hub id which was fetched before; or its GGUF file.
    Never uses the network. Raises ModelNotFound, also where no model is named, BrokenModel or
    UnsupportedModel."""
    if not model:
        raise ModelNotFound(NO_MODEL, HOW_TO_CHOOSE)
    written = str(model)
    _check_writing(written)
    path = Path(os.path.expanduser(written))
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return _from_hub(written, path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelNotFound(
            f"the model's path {written!r} cannot be opened ({reason})", CHECK_PATH
        ) from error
    if is_gguf(path):
        return path
    if not stat.S_ISDIR(mode):
        raise _about_file(path, mode)
    return _in_hub_folder(path)


def is_hub_id(model: str | Path) -> bool:
    """Return whether ``model`` reads as an id ``OWNER/NAME`` of the hub rather than as a path."""
    return isinstance(model, str) and _ID.fullmatch(model) is not None


def state_of(model: str | Path | None) -> tuple[object, ...]:
    """Return changes whenever a file of the model does: names, sizes and times of what is there."""
    if not model:
        return ("none",)
    path = Path(os.path.expanduser(str(model)))
    try:
        if is_hub_id(str(model)) and not path.exists():
            path = _from_hub(str(model), path)
        if not path.is_dir():
            return tuple(_stamp(file) for file in parts_of(path))
        return tuple(sorted((entry.name, *_stamp(Path(entry.path))) for entry in os.scandir(path)))
    except (OSError, ValueError, ModelError):
        return ("gone",)


def weights_files(path: Path) -> list[Path]:
    """Return the files of a GGUF model, or those of a folder with weights. Raises BrokenModel."""
    if not path.is_dir():
        return parts_of(path)
    file = path / "model.safetensors"
    return [file] if file.exists() else sorted(path.glob("*.safetensors"))


def hub_folder(name: str) -> Path:
    """Return the folder of a model in the hub's cache, which may be missing."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"


def _stamp(path: Path) -> tuple[object, ...]:
    try:
        stat = path.stat()
    except OSError as error:
        return (error.errno,)
    # Another file may take its place with its size and time.
    return stat.st_size, stat.st_mtime_ns, stat.st_mode, stat.st_ino, stat.st_ctime_ns


def _check_writing(written: str) -> None:
    """Raise ModelNotFound for a spelling that is neither a path nor an id."""
    stripped = written.strip()
    if not stripped:
        raise ModelNotFound("the model's path is blank", "give one, or leave it empty")
    if stripped[0] in "\"'" and stripped[-1] == stripped[0]:
        raise ModelNotFound(
            f"the model's path {written} has quotation marks around it", f"write {stripped[1:-1]}"
        )
    if written.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        path = unquote(urlsplit(written).path)
        raise ModelNotFound(f"{written} is an address, not a path", f"write {path or 'the path'}")
    if "://" in written:
        match = re.match(
            r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)", written
        )
        name = match.group(1) if match else "OWNER/NAME"
        raise ModelNotFound(
            f"{written} is a web address, and nothing is fetched unless you ask for it",
            f"run `hf download {name}` and write {name}",
        )
    if re.search(r"\$\w|\$\{|%\w+%", written):
        raise ModelNotFound(
            f"the model's path {written} names a variable, which is not filled in",
            "write the whole path",
        )
    if written != stripped and not Path(os.path.expanduser(written)).exists():
        raise ModelNotFound(
            f"the model's path {written!r} has blanks around it", f"write {stripped}"
        )


def _from_hub(written: str, path: Path) -> Path:
    """Return the folder of a fetched id; nothing is at ``path``."""
    if path.is_symlink():
        raise ModelNotFound(
            f"{path} is a link to {os.readlink(path)}, which does not exist",
            "fix the link or write where the model is",
        )
    if not is_hub_id(written):
        raise _about_missing(written, path)
    folder = hub_folder(written)
    fetch = f"fetch it with `hf download {written}`"
    if not folder.is_dir():
        raise ModelNotFound(f"model {written} is not on this machine", fetch)
    snapshots = snapshots_of(folder)
    if not snapshots:
        raise BrokenModel(f"model {written} was not fetched to its end", fetch)
    # The newest may hold a file alone that was read for itself, as a model's card.
    for files in ("*.safetensors", "*.gguf"):
        if holding := next((snapshot for snapshot in snapshots if any(snapshot.glob(files))), None):
            return holding
    return snapshots[0]


def snapshots_of(model: Path) -> list[Path]:
    """Return the snapshots of a model in the hub's cache: the one that ``main`` names, then the
    others, the newest first."""
    try:
        main = (model / "refs" / "main").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        main = ""

    def order(snapshot: Path) -> tuple[bool, int, str]:
        return snapshot.name != main, -snapshot.stat().st_mtime_ns, snapshot.name

    try:
        folders = [folder for folder in (model / "snapshots").iterdir() if folder.is_dir()]
        return sorted(folders, key=order)
    except OSError:
        return []


def _about_missing(written: str, path: Path) -> ModelError:
    if re.fullmatch(r"[\w.-]+:[\w.-]+", written) and not written[1:].startswith(":\\"):
        return UnsupportedModel(
            f"{written} is a name of Ollama, not a path",
            f"choose it with: redraft models use {written}",
        )
    if re.match(r"[A-Za-z]:[\\/]", written) and not is_windows():
        return ModelNotFound(
            f"{written} is a path of Windows, and this is another system",
            "write where the model is here",
        )
    if written.startswith("~") and str(path).startswith("~"):
        return ModelNotFound(f"{written} names a user who is not here", "write the whole path")
    if not written.startswith((".", "/", "~")) and not path.is_absolute() and "/" not in written:
        return ModelNotFound(
            f"no model is called {written}",
            "give a folder by its whole path, or an id OWNER/NAME that was fetched",
        )
    if not path.is_absolute():
        return ModelNotFound(
            f"no model folder {written} in {Path.cwd()}", "give the folder by its whole path"
        )
    parent = next(folder for folder in path.parents if folder.exists())
    return ModelNotFound(
        f"no model at {written}: there is nothing of that name in {parent}", CHECK_PATH
    )


def _about_file(path: Path, mode: int) -> ModelError:
    folder = f"give its folder {path.parent}"
    if not stat.S_ISREG(mode):
        return ModelNotFound(f"{path} is a device, not a folder", CHECK_PATH)
    try:
        path.open("rb").close()
    except OSError as error:
        return ModelNotFound(f"{path} cannot be read ({error.strerror})", "check its permissions")
    name = path.name.lower()
    if name.endswith(".safetensors") and (path.parent / "config.json").is_file():
        return ModelNotFound(f"{path} is the weights file of a model", folder)
    if name.endswith(".safetensors"):
        return BrokenModel(
            f"{path} is a weights file without the config.json beside it",
            "fetch the whole model and give its folder",
        )
    if name.endswith(_PICKLED):
        return UnsupportedModel(
            f"{path} holds pickled weights, which are never loaded",
            "give a folder with *.safetensors",
        )
    if name.endswith(_ARCHIVES):
        return ModelNotFound(f"{path} is an archive", "unpack it and give the folder")
    if name in ("config.json", "tokenizer.json", "model.safetensors.index.json"):
        return ModelNotFound(f"{path} is one file of a model", folder)
    return ModelNotFound(f"{path} is a file, not the folder of a model", CHECK_PATH)


def _in_hub_folder(path: Path) -> Path:
    """Return the snapshot, where a path names the folder of the hub's cache around it."""
    snapshots = path if path.name == "snapshots" else path / "snapshots"
    if not (path / "config.json").exists() and snapshots.is_dir():
        folders = sorted(folder for folder in snapshots.iterdir() if folder.is_dir())
        if len(folders) == 1:
            return folders[0]
    return path
