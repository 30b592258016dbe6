"""Files of llama.cpp's library on this machine. Nothing is loaded."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from operating_system.system import is_macos, is_windows

VARIABLE = "REDRAFT_LLAMA_LIB"
"""Names the library to take, or its folder."""
PACKAGE = "llama_cpp"
DISTRIBUTION = "llama-cpp-python"
"""The package's name where packages come from."""
INSTALL = "install it with: pip install 'redraft[llama-cpp]'"


def library_names() -> tuple[str, ...]:
    """Return the names of llama.cpp's library on this system."""
    if is_windows():
        return ("llama.dll", "libllama.dll")
    return ("libllama.dylib",) if is_macos() else ("libllama.so", "libllama.so.0")


_GPU_LIBRARY = re.compile(r"ggml-(cuda|hip|metal|vulkan|sycl|opencl|musa|cann)\b")
_BREW = "/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """``source``: in words, whose library it is."""

    path: Path
    source: str


def is_installed() -> bool:
    """Return whether some library is here, sound or not."""
    return bool(os.environ.get(VARIABLE)) or find_library() is not None


def has_gpu_library() -> bool:
    """Return whether a library for a GPU lies beside that of llama.cpp. Raises
    FileNotFoundError."""
    library = find_library()
    if library is None:
        return False
    folder = library.path.resolve().parent
    names = (file.name for each in (folder, folder.parent / "bin") for file in each.glob("*ggml-*"))
    return any(_GPU_LIBRARY.search(name) for name in names)


def other_library() -> str:
    """Return the remedy for a library that cannot be used."""
    if os.environ.get(VARIABLE):
        return f"unset {VARIABLE}, or name another library by it, as that of {DISTRIBUTION}"
    return INSTALL


def find_library() -> LibraryFile | None:
    """The first there is: the user's own, that of llama-cpp-python, Homebrew's, conda's. Raises
    FileNotFoundError where the user's own is not where they say."""
    if own := os.environ.get(VARIABLE):
        file = _in_folder(Path(own)) if Path(own).is_dir() else Path(own)
        if file is None or not file.is_file():
            raise FileNotFoundError(f"{VARIABLE} names {own}, where no library is")
        return LibraryFile(file, VARIABLE)
    for source, folder in _folders():
        if file := _in_folder(folder):
            return LibraryFile(file, source)
    return None


def _folders() -> list[tuple[str, Path]]:
    folders = []
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.origin:
        folders.append((DISTRIBUTION, Path(package.origin).parent / "lib"))
    prefixes = [Path(prefix) for prefix in (os.environ.get("HOMEBREW_PREFIX"), *_BREW) if prefix]
    folders += [("Homebrew", prefix / "lib") for prefix in prefixes if (prefix / "Cellar").is_dir()]
    if prefix := os.environ.get("CONDA_PREFIX"):
        inner = ("Library", "bin") if is_windows() else ("lib",)
        folders.append(("conda", Path(prefix).joinpath(*inner)))
    return folders


def _in_folder(folder: Path) -> Path | None:
    return next((folder / name for name in library_names() if (folder / name).is_file()), None)
