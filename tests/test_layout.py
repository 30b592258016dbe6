"""The walls of the house: who imports whom, without circles, and what is loaded when."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = {"accel", "repo_index", "lsp_server", "operating_system"}
LABORATORY = "tests.benchmarks"
"""It may import all of ours and torch; nothing of ours imports it."""
FORBIDDEN = {
    "accel": {"repo_index", "lsp_server", "pygls", "lsprotocol", "tests"},
    "repo_index": {"accel", "lsp_server", "torch", "transformers", "pygls", "lsprotocol", "tests"},
    "lsp_server": {"torch", "transformers", "tests"},
    "operating_system": {"accel", "repo_index", "lsp_server", "torch", "transformers", "tests"},
}
JOINS_ACCEL_AND_INDEX = ("engine/workspaces.py", "commands/cli/argument_parser.py")
"""The only places of lsp_server that may import both ``accel`` and ``repo_index``."""


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_names(path: Path) -> set[str]:
    """Dotted names that a file imports anywhere, for types alone and within functions, too."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imports(path: Path) -> set[str]:
    """Top-level names of all modules that a file imports, anywhere in it."""
    return {name.split(".")[0] for name in imported_names(path)}


def python_files(package: str) -> list[Path]:
    """Files of a package, without the code that the demo shows: it is data."""
    folder = ROOT / package.replace(".", "/")
    return sorted(folder.rglob("*.py"))


def laboratory_files() -> list[Path]:
    """Files of the laboratory without their tests."""
    tests = ROOT / LABORATORY.replace(".", "/") / "tests"
    return [path for path in python_files(LABORATORY) if tests not in path.parents]


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_packages_import_only_what_they_may(package: str) -> None:
    offences = {
        str(path.relative_to(ROOT)): sorted(imports(path) & FORBIDDEN[package])
        for path in python_files(package)
        if imports(path) & FORBIDDEN[package]
    }
    assert offences == {}


def test_accel_and_repo_index_meet_in_one_place() -> None:
    meeting = [
        str(path.relative_to(ROOT / "lsp_server"))
        for path in python_files("lsp_server")
        if {"accel", "repo_index"} <= imports(path)
    ]
    assert [path for path in meeting if not path.startswith(JOINS_ACCEL_AND_INDEX)] == []


LIGHT = [
    "lsp_server",
    "lsp_server.commands.cli.main",
    "lsp_server.commands.cli.argument_parser",
    "lsp_server.commands.cli.serve",
    "lsp_server.editor.daemon.front",
    "lsp_server.editor.daemon.host",
    "lsp_server.editor.server",
    "repo_index.indexer",
    "accel",
]


def test_importing_loads_no_torch() -> None:
    code = f"""
import importlib, sys
for module in {LIGHT!r}:
    importlib.import_module(module)
    print(module, [name for name in ("torch", "transformers") if name in sys.modules])
"""
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert loaded.stdout.splitlines() == [f"{module} []" for module in LIGHT]


@pytest.mark.parametrize(
    "module", ["lsp_server.commands.cli.serve", "lsp_server.editor.daemon.front"]
)
def test_the_front_needs_the_standard_library_alone(module: str) -> None:
    code = (
        f"import sys, {module}; ours = {sorted(OURS)!r}; "
        "print(sorted({m.split('.')[0] for m in sys.modules} "
        "- set(sys.stdlib_module_names) - set(ours) - {'__main__'}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert loaded.stdout.strip() == "[]"


TORCH_ROOMS = ("accel.models", LABORATORY)
"""Where torch and transformers may be imported."""
TORCH = ("torch.", "transformers.")
GUARDED = {"accel.models.backends"}
"""These import what needs torch within functions, which run where it is installed."""


@cache
def modules() -> dict[str, Path]:
    """Files of the packages and of the laboratory by the name of their module."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for files in (*map(python_files, sorted(OURS)), laboratory_files())
        for path in files
    }


@cache
def import_graph() -> dict[str, set[str]]:
    """By module, the modules of ours that it imports."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        graph[module] = set()
        for name in imported_names(path):
            longest = name
            while longest and longest not in known:
                longest = longest.rpartition(".")[0]
            graph[module] |= {longest} - {"", module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules each of which imports all others of its group, if by a detour."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for module in graph[waiting.pop()] - seen:
                seen.add(module)
                waiting.append(module)
        return seen

    reach = {module: reached(module) for module in graph}
    found: list[set[str]] = []
    for module in sorted(graph):
        if module in reach[module] and not any(module in circle for circle in found):
            found.append({other for other in reach[module] if module in reach[other]})
    return found


def test_no_imports_run_in_a_circle() -> None:
    assert [sorted(circle) for circle in circles(import_graph())] == []


def folder_pairs(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Folders below the packages that import each other. A folder and one inside it are no pair."""
    files = modules()

    def folder(module: str) -> str:
        parts = files[module].relative_to(ROOT).parts[:-1]
        return ".".join(parts) if len(parts) > 1 else ""

    arrows = {(folder(module), folder(other)) for module in graph for other in graph[module]}
    return sorted(
        (one, other)
        for one, other in arrows
        if one and one < other and (other, one) in arrows and not f"{other}.".startswith(f"{one}.")
    )


def test_no_two_folders_import_each_other() -> None:
    assert folder_pairs(import_graph()) == []


FLOORS = {
    "lsp_server": "__main__ | commands | editor | team | models index | engine | tasks | text"
    " | shared",
    "lsp_server.editor": "agents | daemon | handlers | document_sync | execute_command"
    " | requests | server | next_edits notices | editing hub | completion"
    " | in_flight protocol remote screen",
}
"""Modules and folders of a package from the top: each imports only those below it."""


@pytest.mark.parametrize("package", FLOORS)
def test_a_folder_of_the_server_imports_only_those_below_it(package: str) -> None:
    named = enumerate(FLOORS[package].split(" | "))
    floors = {name: floor for floor, names in named for name in names.split()}

    def folder(module: str) -> str:
        is_inside = module.startswith(f"{package}.")
        return module.removeprefix(f"{package}.").partition(".")[0] if is_inside else ""

    graph = import_graph()
    arrows = {(folder(module), folder(other)) for module in graph for other in graph[module]}
    inside = {(one, other) for one, other in arrows if one and other and one != other}
    assert {name for arrow in inside for name in arrow} == set(floors)
    assert sorted(arrow for arrow in inside if floors[arrow[0]] >= floors[arrow[1]]) == []


def importers(prefixes: tuple[str, ...], rooms: tuple[str, ...]) -> set[str]:
    """Modules outside of some rooms that import what begins with one of the prefixes."""
    return {
        module
        for module, path in modules().items()
        if not module.startswith(rooms)
        and any(f"{name}.".startswith(prefixes) for name in imported_names(path))
    }


def test_torch_is_imported_where_models_are_computed_alone() -> None:
    assert importers(TORCH, TORCH_ROOMS) == set()


def imported_at_once(path: Path) -> set[str]:
    """Dotted names that a file imports when it is imported itself."""
    found = set()
    waiting: list[ast.AST] = list(parsed(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)
    return found


def test_what_needs_torch_is_imported_by_its_like_alone() -> None:
    """Torch is an extra: all other modules are imported without it."""
    names = {module: imported_at_once(path) for module, path in modules().items()}
    needing = {
        module for module, found in names.items() if any(f"{n}.".startswith(TORCH) for n in found)
    }
    while more := {
        module
        for module, found in names.items()
        if module not in needing
        and any(name in needing or name.rpartition(".")[0] in needing for name in found)
    }:
        needing |= more
    ours = {module for module in needing if not module.startswith(LABORATORY)}
    assert "accel.models.torch_registry" in ours
    assert sorted(one for one in ours if not one.startswith(TORCH_ROOMS)) == []
    assert sorted(
        module
        for module, found in import_graph().items()
        if found & ours and module not in needing and not module.startswith(LABORATORY)
    ) == sorted(GUARDED)


def test_nothing_that_is_installed_needs_the_laboratory() -> None:
    assert importers(("tests.",), (LABORATORY,)) == set()


def test_the_version_stands_in_one_way() -> None:
    from lsp_server.shared.version import VERSION

    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{VERSION}"\n' in project
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_public_class_name_stands_in_one_place() -> None:
    places: dict[str, list[str]] = {}
    for path in modules().values():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
    assert len(places) > 200


def test_python_is_started_in_one_way() -> None:
    """But for the laboratory, which nobody installs."""
    naming = {
        module
        for module, path in modules().items()
        if not module.startswith(LABORATORY) and "sys.executable" in path.read_text("utf-8")
    }
    assert naming == {
        "accel.native.python_process",
        "lsp_server.commands.cli.doctor",
        "lsp_server.editor.daemon.address",
    }


ASKS_THE_SYSTEM = re.compile(
    r"sys\.platform|os\.name\b|platform\.system|hasattr\(os,|"
    r"os\.(getuid|fork|nice|sysconf|uname|kill|replace|umask|sched_\w+|cpu_count)\b|"
    r"import (fcntl|msvcrt|resource|signal|winreg|platformdirs)|"
    r"/proc/|/sys/|AF_UNIX|start_new_session|preexec_fn|creationflags"
)
MAY_ASK = {
    # Before there is a path on which other modules are found.
    "accel.native.python_process": {"os.name"},
    # Which code is compiled, and for what processor.
    "accel.models.cpu.barrier": {"sys.platform"},
    "accel.native.processor": {"/proc/"},
    # What other programs do on each system.
    "repo_index.secret_paths": {"/proc/"},
    # Ours is read and written by nobody else while it is made.
    "lsp_server.editor.daemon.host": {"os.umask"},
    "lsp_server.editor.daemon.transport": {"AF_UNIX", "os.umask"},
}


def test_the_operating_system_is_asked_in_one_place() -> None:
    asking = {
        module: found
        for module, path in modules().items()
        if not module.startswith(("operating_system", LABORATORY))
        and (found := {one[0] for one in ASKS_THE_SYSTEM.finditer(path.read_text("utf-8"))})
    }
    assert asking == MAY_ASK


def test_what_is_installed_holds_no_laboratory() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    patterns = re.findall(r'"([^"]+)"', project.split("packages.find]")[1].split("]")[0])
    folders = [".".join(path.parent.relative_to(ROOT).parts) for path in modules().values()]
    installed = {name for name in folders if any(fnmatch(name, one) for one in patterns)}
    assert {name.split(".")[0] for name in installed} == OURS


def test_contributing_names_files_that_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)*/[\w-]*(?:\.py|\.json|\.md)?)`", page))
    assert len(named) > 20
    assert sorted(name for name in named if not (ROOT / name).exists()) == []
