"""``redraft serve-http``: the engine over HTTP, for a team."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.commands.cli.model_arguments import add_model_arguments, model_options
from lsp_server.editor.remote.address import is_loopback
from lsp_server.models.used import command_model
from lsp_server.shared.contract.options import SERVER_CACHES, EngineOptions
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import say
from operating_system.folders import log_folder, state_folder
from operating_system.processes import allow_many_files, stay_quick

if TYPE_CHECKING:
    from lsp_server.shared.contract.status import EngineStatus
    from lsp_server.team.http_server.serving import Listening

EXTRA = ("starlette", "uvicorn")
MOST_PORT = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=port, default=0, help="port; 0: any free one")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        help="a host name that clients use for this server, as code.example.org",
    )
    parser.add_argument("--certificate", help="PEM file, for https")
    parser.add_argument("--private-key", help="PEM file, for https")
    parser.add_argument(
        "--keys", type=Path, help="file of keys; without it, the server makes one key and stores it"
    )
    parser.add_argument(
        "--admin",
        metavar="HOST:PORT",
        help="separate address for /metrics (Prometheus), which needs no key",
    )
    parser.add_argument(
        "--requests-per-minute", type=float, default=3000.0, help="of one key, on average"
    )
    parser.add_argument("--concurrent", type=int, default=32, help="requests of one key at once")
    add_model_arguments(parser)


def port(text: str) -> int:
    """Return a port in words of the command line. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()) or int(text[:6]) > MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port; give 0 to {MOST_PORT}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT. Raises RedraftError, OSError."""
    for module in EXTRA:
        if importlib.util.find_spec(module) is None:
            raise RedraftError("serve-http needs more packages; pip install 'redraft[server]'")
    admin_at = _address(args.admin) if args.admin else None
    if bool(args.certificate) != bool(args.private_key):
        raise RedraftError("--certificate and --private-key go together; give both")
    from lsp_server.engine.client import EngineClient
    from lsp_server.engine.model_paths import check_model
    from lsp_server.shared.processes.log import start_log
    from lsp_server.team.http_server.application import app, watch
    from lsp_server.team.http_server.keys import Keys
    from lsp_server.team.http_server.metrics import Metrics, admin_app
    from lsp_server.team.http_server.rate_limits import RequestLimits
    from lsp_server.team.http_server.serving import Listening, serve

    args.model = command_model(args.model)
    check_model(args.model)
    keys, tell_progress = Keys(args.keys or _own_keys()), _progress()
    start_log("http-server")
    allow_many_files()
    stay_quick("serves a team")
    _warn_of_plain_http(args)
    listening = Listening(args.host, args.port, args.certificate, args.private_key)
    metrics = Metrics()
    options = EngineOptions(path=args.model, **model_options(args), **SERVER_CACHES)
    engine = EngineClient(options, lambda: tell_progress(engine.status))
    application = app(
        engine,
        keys,
        RequestLimits(args.requests_per_minute, args.concurrent),
        host_names=[name.lower() for name in args.name],
        watch=lambda: watch(engine),
        metrics=metrics,
    )
    admin = admin_app(engine, metrics)
    if serve(application, listening, admin, admin_at):
        return 0
    raise RedraftError(engine.status.message or f"the server did not come up; see {log_folder()}")


def _progress() -> Callable[[EngineStatus], None]:
    """Says what the engine does until it is ready, which takes minutes where it has to compile."""
    message = ""

    def tell(status: EngineStatus) -> None:
        nonlocal message
        before, message = message, status.message
        if status.state == "loading" and message not in ("", before):
            say(f"redraft: {message}", file=sys.stderr)

    return tell


def default_keys_file() -> Path:
    """Return the file of keys that is used when none is named."""
    return state_folder() / "http-server.keys"


def _own_keys() -> Path:
    from lsp_server.team.http_server.keys import own_keys_file

    file = default_keys_file()
    key = own_keys_file(file)
    if key is None:
        say(f"redraft: the key is the one in {file}", file=sys.stderr)
    else:
        say(f"redraft: the key is {key}\nredraft: it is kept in {file}", file=sys.stderr)
    return file


def _address(text: str) -> Listening:
    from lsp_server.team.http_server.serving import Listening

    host, colon, number = text.rpartition(":")
    try:
        if colon:
            return Listening(host.strip("[]") or "127.0.0.1", port(number))
    except argparse.ArgumentTypeError:
        pass
    raise RedraftError(f"--admin {text} is not an address; give HOST:PORT, as 127.0.0.1:9090")


def _warn_of_plain_http(args: argparse.Namespace) -> None:
    if not is_loopback(args.host) and not args.certificate:
        say(
            "redraft: keys and code travel unencrypted; put https before this server or give "
            "--certificate and --private-key",
            file=sys.stderr,
        )
