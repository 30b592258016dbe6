"""``redraft doctor``: checks the installation and says how to fix what is wrong."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from accel.errors import HOW_TO_CHOOSE
from accel.native.levels import ARM_LEVELS, level_here
from accel.native.machine_code import packed_code
from lsp_server.commands.cli.model_arguments import add_model_arguments, model_options
from lsp_server.commands.cli.terminal import terminal
from lsp_server.models.choices import choices_file, read_choices
from lsp_server.models.used import command_model, used_models
from lsp_server.shared.network import network_settings
from lsp_server.shared.printable import say
from lsp_server.shared.settings import Settings
from operating_system.file_systems import most_watches
from operating_system.folders import data_folder
from operating_system.machine import cores
from operating_system.system import TRANSLATED, is_linux, is_translated

PACKAGES = ("tokenizers", "pygls", "lsprotocol", "watchdog", "numba")
ANOTHER_MODEL = "choose another one: redraft models"
LOW_DISK_BYTES = 1 << 30
LOW_MEMORY_BYTES = 1 << 30
LOW_WATCHES = 65_536


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``remedy`` is empty when all is well."""

    what: str
    found: str
    remedy: str = ""
    fatal: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "--server",
        default="",
        help="address of a server to check with the key in REDRAFT_SERVER_KEY, else that in "
        "REDRAFT_SERVER_URL, else the one that the running daemon uses",
    )
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="print one JSON document instead")
    printed.add_argument(
        "--report",
        action="store_true",
        help="print a text to attach to a question: no source code, no keys, no names of folders",
    )


def run(args: argparse.Namespace) -> int:
    """Print every finding. Exit code 1 when one of them keeps Redraft from working."""
    model = command_model(args.model)
    findings = list(examine(model or None, args.server, model_options(args)))
    if args.json:
        say(json.dumps([asdict(finding) for finding in findings], indent=2))
    elif args.report:
        from lsp_server.commands.cli.report import report

        for line in report(
            f"{each.what}: {each.found}. {each.remedy}".rstrip(". ") for each in findings
        ):
            say(line)
    else:
        _show(findings)
    return int(any(finding.fatal for finding in findings))


def examine(
    model: str | None, server: str = "", options: dict[str, Any] | None = None
) -> Iterator[Finding]:
    """Look at everything in turn; a check that fails is a finding, never an exception.
    ``options``: of ``Engine.load``."""
    checks: list[Callable[[], Finding]] = [
        _python,
        *[partial(_package, name) for name in PACKAGES],
        _processor,
        _memory,
        _disk,
        _watches,
        lambda: Finding("network", *network_settings()),
        _torch,
        _llama_cpp,
        _chosen,
        lambda: _server(server),
        lambda: _model(model, options or {}),
        lambda: _formats(model),
    ]
    for check in checks:
        try:
            yield check()
        except Exception as error:
            yield Finding("check", f"failed: {error}", "reinstall Redraft", fatal=True)


def _show(findings: list[Finding]) -> None:
    console = terminal(soft_wrap=True)
    for finding in findings:
        mark, colour = ("!", "yellow") if finding.remedy else ("ok", "green")
        if finding.fatal:
            mark, colour = "x", "red"
        console.print(Text.assemble((f"{mark:>4}", colour), f" {finding.what}: {finding.found}"))
        if finding.remedy:
            console.print(f"      {finding.remedy}", style="bold")


def _python() -> Finding:
    return Finding("python", f"{platform.python_version()} at {sys.executable}")


def _package(name: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(name, "not installed", "install Redraft again: pip install redraft", True)
    return Finding(name, importlib.metadata.version(name))


def _processor() -> Finding:
    level = level_here()
    origin = "which came with Redraft" if packed_code() is not None else "which is compiled here"
    summary = f"{cores()} cores; code for {level or 'this processor alone'}, {origin}"
    remedy = TRANSLATED if is_translated() else ""
    return Finding("processor", f"{summary}; it was tested {_where_tested(level)}", remedy)


def _where_tested(level: str | None) -> str:
    """Return the machines on which a level's code was tested, unless this is one."""
    if level in ARM_LEVELS:
        return "on emulated processors under Linux alone"
    if not is_linux():
        return "under Linux alone"
    return "on such processors" if level is not None else "on other processors alone"


def _memory() -> Finding:
    from operating_system.machine import free_bytes

    free = free_bytes()
    remedy = "close other programs or choose a smaller model" if free < LOW_MEMORY_BYTES else ""
    return Finding("free memory", f"{free / 2**30:.1f} GiB", remedy)


def _disk() -> Finding:
    folder = data_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    remedy = f"free some space on the disk of {existing}" if free < LOW_DISK_BYTES else ""
    return Finding("free disk for indexes", f"{free / 2**30:.1f} GiB at {folder}", remedy)


def _watches() -> Finding:
    if (limit := most_watches()) is None:
        return Finding("file watching", "by the system, without a known limit")
    remedy = f"raise it with: sysctl fs.inotify.max_user_watches={8 * LOW_WATCHES}"
    watched = f"inotify, at most {limit} folders"
    return Finding("file watching", watched, remedy if limit < LOW_WATCHES else "")


def _torch() -> Finding:
    """Not needed for what our own forward computes."""
    from accel.models import torch_extra

    if not torch_extra.is_installed():
        finding = f"not installed; for GPUs and other folders {torch_extra.INSTALL}"
        return Finding("torch", finding)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in torch_extra.PACKAGES]
    return Finding("torch", ", ".join(versions))


def _llama_cpp() -> Finding:
    from accel.errors import UnsupportedModel
    from accel.models.llama_cpp.library_files import INSTALL, is_installed

    if not is_installed():
        return Finding("llama.cpp", f"not installed; for GGUF files of other families {INSTALL}")
    from accel.models.llama_cpp.process import examine

    try:
        examined = examine()
    except UnsupportedModel as error:
        return Finding("llama.cpp", error.cause, error.remedy)
    devices = ", ".join(examined["devices"]) or "none"
    return Finding(
        "llama.cpp",
        f"{examined['version']} of {examined['source']} at {examined['path']}, laid out as "
        f"{examined['layout']}; devices: {devices}",
    )


def _chosen() -> Finding:
    from lsp_server.models.catalogue import known_models

    used = used_models(Settings(), read_choices())
    purposes = {"suggestions": used.completion, "edits": used.edits}
    if used.next_edits != used.completion:
        purposes["next edits"] = used.next_edits
    if not any(model.path for model in purposes.values()):
        return Finding("chosen model", "none", HOW_TO_CHOOSE)
    names = {str(path): f"{card.name}, {path}" for card in known_models() for path in card.paths}
    choices = "; ".join(
        f"{purpose}: {names.get(model.path, model.path) or 'none'}, {model.reason}"
        for purpose, model in purposes.items()
    )
    paths = [model.path for model in (*purposes.values(), used.drafts) if model.path]
    missing = [path for path in paths if not Path(path).exists()]
    remedy = f"{missing[0]} is not there; {ANOTHER_MODEL}" if missing else ""
    return Finding("chosen model", f"{choices} (in {choices_file()})", remedy)


def _server(url: str) -> Finding:
    import asyncio

    from lsp_server.editor.daemon.control import ask_daemon
    from lsp_server.editor.daemon.server_environment import server_environment
    from lsp_server.editor.remote.discovery import checked_server
    from lsp_server.shared.errors import ModelUnavailable

    environment = server_environment()
    url = url or environment.get("url", "")
    if not url:
        running = (ask_daemon("status") or {}).get("engines", [])
        used = next((daemon["server"] for daemon in running if daemon.get("server")), None)
        if used is None:
            return Finding("server", "none: the model is on this machine")
        if used["answers"] == "server":
            drafted = "" if used["drafted"] else ", undrafted"
            return Finding("server", f"{used['url']} answers{drafted}")
        return Finding("server", f"{used['url']} does not answer", used["reason"])
    try:
        checked = asyncio.run(checked_server(url, environment.get("key", "")))
    except ModelUnavailable as error:
        return Finding("server", error.cause, error.remedy or "see whether it runs", True)
    return Finding("server", checked)


def _model(model: str | None, options: dict[str, Any]) -> Finding:
    from accel.decoding.engine import Engine
    from accel.errors import AccelError, ModelError
    from lsp_server.engine.model_paths import check_model
    from lsp_server.shared.errors import ModelUnavailable

    try:
        check_model(model)
        engine = Engine.load(model, **options)
    except ModelUnavailable as error:
        return Finding("model", error.cause, error.remedy, True)
    except ModelError as error:
        return Finding("model", error.cause, error.remedy or ANOTHER_MODEL, True)
    except AccelError as error:
        return Finding("model", str(error), ANOTHER_MODEL, True)
    how = f"{engine.formats}, {engine.execution_path}"
    if engine.model.computed_by:
        how = f"{engine.dtype}, computed by {engine.model.computed_by}"
    facts = [f"{engine.name}, {how}"]
    if (learnt := engine.model.learnt) is not None:
        facts.append(f"forwards by rows: {learnt.costs}")
    return Finding("model", "; ".join([*facts, *filter(None, [engine.notice])]))


def _formats(model: str | None) -> Finding:
    """Return a finding about the model's prompt formats and their problems."""
    from accel.text.format_check import format_problems, template_problems
    from accel.text.special_tokens import fim_format_of
    from lsp_server.engine.model_paths import tokenizer_of
    from lsp_server.shared.errors import ModelUnavailable

    try:
        tokenizer = tokenizer_of(model)
    except ModelUnavailable:
        return Finding("prompt formats", "not known, since the model cannot be opened")
    fim_format = fim_format_of(tokenizer)
    filling = "from the left alone"
    if fim_format is not None:
        filling = f"holes as {fim_format.family or 'metadata'}"
    edits = "edits by its chat template" if tokenizer.chat_template else "no chat template"
    problems = list(dict.fromkeys([*format_problems(tokenizer), *template_problems(tokenizer)]))
    summary = "; ".join([f"{filling}, {edits}", *problems])
    return Finding("prompt formats", summary, "take another file of this model" if problems else "")
