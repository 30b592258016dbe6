"""Options of ``redraft bench``: a model, how it is computed, a text to measure on."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.files.model_options import ModelOptions
from lsp_server.commands.cli.model_arguments import add_field_arguments
from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError

if TYPE_CHECKING:
    from lsp_server.engine.service import EngineService
    from lsp_server.shared.contract.options import EngineOptions

PEER = "llama-cpp"
_FIELDS = [option for option in fields(ModelOptions) if option.name not in ("path", "backend")]


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a model and how it is computed."""
    parser.add_argument("--model", metavar="PATH", help="folder or GGUF file; else the chosen one")
    add_field_arguments(parser, ModelOptions, _FIELDS)
    add_json_argument(parser)


def add_text_argument(parser: argparse.ArgumentParser) -> None:
    """On which text."""
    parser.add_argument("--file", type=Path, help="a source file; else one of Redraft's own")


def source_file(file: Path | None) -> Path:
    """Return the file to measure on, by default one of ours."""
    from accel.decoding import engine

    return file or Path(engine.__file__)


def source_text(file: Path | None) -> str:
    """Return the text of that file. Raises BenchError."""
    chosen = source_file(file)
    try:
        return chosen.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise BenchError(f"{chosen} cannot be read ({error})") from error


def options_of(args: argparse.Namespace, backend: Any = "auto") -> EngineOptions:
    """Return the options of an engine as the server has it."""
    from lsp_server.shared.contract.options import EngineOptions

    values = {option.name: getattr(args, option.name) for option in _FIELDS}
    return EngineOptions(
        path=args.model or "", backend=backend, common=False, disk_cache_megabytes=0, **values
    )


def started(args: argparse.Namespace, backend: str = "auto") -> EngineService:
    """Return an engine with its model loaded. Raises AccelError."""
    from lsp_server.engine.service import EngineService

    service = EngineService(options_of(args, backend))
    service.load()
    service.warm_up()
    return service


def why_no_peer(model: str | None) -> str:
    """Return why llama.cpp cannot be measured beside us; empty if it can."""
    from accel.files.gguf.file import is_gguf
    from accel.models.hub import find_model_path
    from accel.models.llama_cpp.library_files import is_installed

    if not is_gguf(find_model_path(model)):
        return "llama.cpp reads GGUF files alone"
    return "" if is_installed() else "`pip install 'redraft[llama-cpp]'` installs llama.cpp"
