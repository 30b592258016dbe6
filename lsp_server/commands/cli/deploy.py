"""``redraft deploy --ray``: the team's server on a Ray cluster, or on a small one made here."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from accel.files.model_options import ModelOptions
from lsp_server.commands.cli.model_arguments import (
    add_field_arguments,
    add_model_arguments,
    model_options,
)
from lsp_server.commands.cli.serve_http import port
from lsp_server.engine.model_paths import check_model
from lsp_server.models.used import command_model
from lsp_server.shared.errors import DeployError
from lsp_server.shared.printable import say
from lsp_server.team.ray_serve.environment import (
    EVERYWHERE,
    end_haproxy,
    has_haproxy,
    own_haproxy,
    use,
)
from lsp_server.team.ray_serve.options import DeployOptions
from operating_system.processes import on_end_signal
from operating_system.system import is_linux

APPLICATION = "redraft"
LOOPBACK = "127.0.0.1"
OBJECT_STORE_BYTES = 200_000_000
"""Requests are small, and none is kept."""
SHORT_PATHS = "/tmp" if is_linux() else None
"""A socket's path has at most 108 characters."""
_OF_MODEL = {option.name for option in fields(ModelOptions)}
_FIELDS = [option for option in fields(DeployOptions) if option.name not in {*_OF_MODEL, "names"}]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ray", action="store_true", help="deploy on Ray Serve")
    parser.add_argument(
        "--address",
        help="a running cluster, as auto on one of its nodes; none: a cluster of this machine "
        "that ends with the command",
    )
    parser.add_argument("--down", action="store_true", help="end what runs at --address")
    parser.add_argument("--host", default=LOOPBACK, help="address that every node listens on")
    parser.add_argument("--port", type=port, default=8000, help="port that every node listens on")
    parser.add_argument("--certificate", help="PEM file on every node, for https")
    parser.add_argument("--private-key", help="PEM file on every node, for https")
    parser.add_argument(
        "--name", action="append", default=[], help="a host name that clients use for this server"
    )
    add_field_arguments(parser, DeployOptions, _FIELDS)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Deploy. Raises DeployError."""
    if not args.ray:
        raise DeployError("say where to deploy: --ray; for one machine use redraft serve-http")
    if importlib.util.find_spec("ray") is None:
        raise DeployError("deploy --ray needs more packages; pip install 'redraft[ray]'")
    if args.down and not args.address:
        raise DeployError("--down needs --address; a cluster of this machine ends with its command")
    if bool(args.certificate) != bool(args.private_key):
        raise DeployError("--certificate and --private-key go together; give both")
    for name in ("certificate", "private_key"):
        if value := getattr(args, name):
            setattr(args, name, os.path.abspath(value))
    if args.certificate and os.environ.get("RAY_SERVE_ENABLE_HA_PROXY") == "1":
        raise DeployError(
            "HAProxy, which RAY_SERVE_ENABLE_HA_PROXY asks for, speaks no https; unset that, or "
            "have a balancer speak https before it and leave out --certificate"
        )
    use(EVERYWHERE)
    if args.down:
        return _end(args.address)
    if not os.path.isfile(args.keys):
        raise DeployError(
            "--keys FILE says who may ask; redraft keys add NAME --keys FILE makes one"
        )
    if args.address is None:
        _check_free(args.host, args.port)
    with tempfile.TemporaryDirectory(prefix="redraft-", dir=SHORT_PATHS) as folder:
        if args.address is None and not args.certificate and has_haproxy():
            use(own_haproxy(Path(folder)))
        options = _options(args)
        try:
            with _working_in(Path(folder, "empty")):
                return _deploy(args, options)
        finally:
            end_haproxy(Path(folder))


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Work in a new folder: Ray has all processes of a deployment take modules from the folder that
    it is made in."""
    before = Path.cwd()
    folder.mkdir()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _options(args: argparse.Namespace) -> DeployOptions:
    model = command_model(args.model)
    check_model(model)
    return DeployOptions.of(
        {
            "model": str(Path(model).resolve()),
            **model_options(args),
            **{field.name: getattr(args, field.name) for field in _FIELDS},
            "keys": str(Path(args.keys).resolve()),
            "names": ",".join(args.name),
        }
    )


def _deploy(args: argparse.Namespace, options: DeployOptions) -> int:
    import ray
    from ray import serve
    from ray.exceptions import RayError

    from lsp_server.team.http_server.rate_limits import KEEP_ALIVE_S
    from lsp_server.team.ray_serve.application import application

    is_own = args.address is None
    _join(args.address, options)
    ended = threading.Event()
    on_end_signal(ended.set)
    try:
        serve.start(
            proxy_location="EveryNode",
            http_options={
                "host": args.host,
                "port": args.port,
                "ssl_certfile": args.certificate,
                "ssl_keyfile": args.private_key,
                "keep_alive_timeout_s": KEEP_ALIVE_S,
            },
        )
        # A second deployment replaces the first, replica by replica, while requests go on.
        serve.run(application(options), name=APPLICATION, route_prefix="/")
        say(json.dumps({"url": _url()}), flush=True)
        if is_own:
            ended.wait()
    except (RuntimeError, RayError) as error:
        raise DeployError(f"{error}; the logs of the cluster say why") from error
    finally:
        if is_own:
            # Replicas work on the requests they have, then end.
            serve.shutdown()
        ray.shutdown()
    return 0


def _check_free(host: str, port: int) -> None:
    """Raise DeployError: of a port in use Ray tells after a minute, in a stack of calls."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise DeployError(f"nothing can listen on {host}:{port} ({error}); give --port") from error


def _url() -> str:
    """Return the cluster's address, which its first deployment alone sets."""
    from ray.serve.context import _get_global_client

    listening = _get_global_client().http_config
    scheme = "https" if listening.ssl_certfile else "http"
    return f"{scheme}://{listening.host}:{listening.port}"


def _join(address: str | None, options: DeployOptions) -> None:
    import ray

    if address is not None:
        try:
            ray.init(address=address, log_to_driver=False)
        except ConnectionError as error:
            message = f"no cluster is at {address}; ray start --head makes one"
            raise DeployError(message) from error
        return
    cpus = options.replicas * options.cpus + options.ingresses * options.ingress_cpus
    try:
        ray.init(
            # More than the machine has, perhaps: cores are shared here.
            num_cpus=int(cpus) + 1,
            dashboard_host=LOOPBACK,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=False,
        )
    except Exception as error:
        # Ray has no class of its own for a node that does not start in time.
        raise DeployError(f"no cluster started here: {error}") from error


def _end(address: str) -> int:
    import ray
    from ray import serve

    _join(address, DeployOptions())
    try:
        serve.delete(APPLICATION)
        say("redraft: the server has ended", file=sys.stderr)
    finally:
        ray.shutdown()
    return 0
