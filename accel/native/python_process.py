"""Python processes of ours: started in isolated mode (``python -I``), so that no module of the
current folder, PYTHONPATH or user's site-packages runs. This module imports nothing but modules
that Python has loaded when it starts."""

import os
import sys

_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "isolated_start.py")


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command line of an isolated process that runs a module as ``python -m`` does."""
    folders = "\n".join(installation_folders())
    return [sys.executable, "-I", *_options(), _START, folders, module, *arguments]


def become_isolated(module: str, arguments: list[str]) -> None:
    """Go on as an isolated process that runs a module; return where this one is isolated. Where a
    process cannot become another one (Windows), only its own path is cleaned."""
    if sys.flags.isolated:
        return
    if os.name == "posix" and sys.executable:
        command = python_command(module, *arguments)
        os.execv(command[0], command)
    trusted = installation_folders()
    sys.path[:] = [entry for entry in sys.path if entry in trusted or _is_of_python(entry)]
    os.environ.pop("PYTHONPATH", None)
    os.environ["PYTHONSAFEPATH"] = "1"


def installation_folders() -> list[str]:
    """Return the folders on the import path that Redraft and the packages that it needs are
    installed in: those that hold this package or the metadata of installed ones
    (``*.dist-info``)."""
    own = os.path.dirname(os.path.dirname(os.path.dirname(_START)))
    folders = [entry for entry in sys.path if entry == own or _has_packages(entry)]
    return folders if own in folders else [*folders, own]


def _options() -> list[str]:
    """Return Python's options from the environment, which isolated mode does not read."""
    options = ["-X", "utf8"] if sys.flags.utf8_mode else []
    if sys.dont_write_bytecode:
        options.append("-B")
    if os.environ.get("PYTHONUNBUFFERED"):
        options.append("-u")
    return options


def _has_packages(folder: str) -> bool:
    try:
        return os.path.isabs(folder) and any(
            name.endswith(".dist-info") for name in os.listdir(folder)
        )
    except OSError:
        return False


def _is_of_python(entry: str) -> bool:
    homes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    return os.path.isabs(entry) and entry.startswith(tuple(home + os.sep for home in homes))
