"""Finds what a text imports, and where in a workspace those files may be: Python, JavaScript and
TypeScript, C and C++, Rust's ``mod`` and Go's paths. Standard library only."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

SCANNED_CHARACTERS = 8_000
"""Imports are at the beginning of a file."""
MOST_IMPORTS = 64

_ALIASED = r"[\w.]+(?:[ \t]+as[ \t]+\w+)?"
_PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]+"
    r"(?:\((?P<several>[^)]*)\)?|(?P<names>[^\n#;]*))"
    rf"|import[ \t]+(?P<modules>{_ALIASED}(?:[ \t]*,[ \t]*{_ALIASED})*)[ \t]*$)",
    re.MULTILINE,
)
_SCRIPT = re.compile(
    r"^[ \t]*(?:import|export)\b(?P<names>[^'\"\n;]*(?:\{[^}]*\})?[^'\"\n;]*)"
    r"['\"](?P<path>[^'\"\n]+)['\"]"
    r"|\brequire\([ \t]*['\"](?P<required>[^'\"\n]+)['\"]",
    re.MULTILINE,
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+\"([^\"\n]+)\"", re.MULTILINE)
_MODULE = re.compile(r"^[ \t]*(?:pub[ \t]+)?mod[ \t]+(\w+)[ \t]*;", re.MULTILINE)
_SCRIPT_ENDINGS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".vue", ".svelte")
_SOURCE_ROOTS = ("", "src", "lib", "python")


@dataclass(frozen=True, slots=True)
class Import:
    """One import: where its file may be, likeliest first, and the names taken from it."""

    paths: tuple[str, ...]
    names: tuple[str, ...] = ()


def imports_of(text: str, path: str) -> list[Import]:
    """Return the imports of ``text``, a file at ``path`` in its workspace, in order."""
    text = text[:SCANNED_CHARACTERS]
    ending = posixpath.splitext(path)[1].lower()
    folder = posixpath.dirname(path)
    if ending in (".py", ".pyi", ".ipynb", ""):
        names = _python(text, folder)
    elif ending in _SCRIPT_ENDINGS:
        names = _script(text, folder)
    elif ending == ".rs":
        paths = ((f"{name}.rs", f"{name}/mod.rs") for name in _MODULE.findall(text))
        names = (Import(tuple(_join(folder, path) for path in pair)) for pair in paths)
    else:
        names = (
            Import((_join(folder, name), name, _join("include", name), _join("src", name)))
            for name in _INCLUDE.findall(text)
        )
    return [imported for imported, _ in zip(names, range(MOST_IMPORTS), strict=False)]


def _python(text: str, folder: str) -> Iterator[Import]:
    for match in _PYTHON.finditer(text):
        if match["modules"]:
            for module in match["modules"].split(","):
                yield Import(tuple(python_paths(module.split()[0], folder)))
            continue
        names = _names(match["several"] or match["names"] or "")
        module = match["module"]
        # A name may itself be a module: `from package import module`.
        for name in names:
            inner = f"{module}{'' if module.endswith('.') else '.'}{name}"
            yield Import(tuple(python_paths(inner, folder)))
        if module.strip("."):
            yield Import(tuple(python_paths(module, folder)), names)


def _names(text: str) -> tuple[str, ...]:
    items = re.sub(r"#[^\n]*", "", text).split(",")
    first = (item.split()[0] for item in items if item.split())
    return tuple(name for name in first if name.isidentifier())


def python_paths(module: str, folder: str) -> Iterator[str]:
    """Yield where the file of a module may be, likeliest first; ``folder`` is that of the file
    which imports it."""
    dots = len(module) - len(module.lstrip("."))
    inside = module.strip(".").replace(".", "/")
    # The file's own folder, those above it, and the usual places of sources.
    bases = [folder]
    while bases[-1]:
        bases.append(posixpath.dirname(bases[-1]))
    roots = [root for root in _SOURCE_ROOTS if root not in bases]
    for base in bases[dots - 1 :][:1] if dots else bases + roots:
        for ending in (".py", "/__init__.py", ".pyi"):
            yield _join(base, (inside + ending).lstrip("/"))


def _script(text: str, folder: str) -> Iterator[Import]:
    for match in _SCRIPT.finditer(text):
        path = match["path"] or match["required"]
        names = tuple(re.findall(r"\w+", match["names"] or ""))
        yield Import(tuple(script_paths(path, folder)), names)


def script_paths(path: str, folder: str) -> list[str]:
    """Return where the file of a module of JavaScript or TypeScript may be, likeliest first;
    ``folder`` is that of the file which imports it."""
    base = _join(folder, path) if path.startswith(".") else _join("src", path.lstrip("@/~"))
    stem = re.sub(r"\.(?:js|jsx|mjs)$", "", base)
    paths = [base, *(stem + ending for ending in _SCRIPT_ENDINGS)]
    return [*paths, *(f"{stem}/index{ending}" for ending in _SCRIPT_ENDINGS)]


def _join(folder: str, path: str) -> str:
    """Return a path in the workspace; one that leaves it names no file."""
    return posixpath.normpath(posixpath.join(folder, path))
