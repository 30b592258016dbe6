"""``redraft status``: shows what the user's daemon is doing."""

from __future__ import annotations

import argparse
import json
from typing import Any

from lsp_server.shared.printable import say

ANSWERS = {"server": "the server", "local": "the model on this machine", "nothing": "nothing"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--explain", action="store_true", help="with the times of requests")


def run(args: argparse.Namespace) -> int:
    """Ask the daemon; 1 when none runs."""
    from lsp_server.editor.daemon.control import ask_daemon

    status = ask_daemon("status")
    if status is None:
        say(json.dumps({"running": False}) if args.json else "no daemon runs")
        return 1
    say(json.dumps(status) if args.json else _page(status, args.explain))
    return 0


def _page(status: dict[str, Any], explain: bool = False) -> str:
    lines = [f"daemon    process {status['pid']}, {status['clients']} client(s), up "
             f"{status['uptime_s']:.0f} s, log {status['log']}"]  # fmt: skip
    memory = status["memory"]
    lines.append(f"memory    {memory['held_bytes'] / 1e6:,.0f} of "
                 f"{memory['budget_bytes'] / 1e6:,.0f} MB for models")  # fmt: skip
    if status.get("saves_power"):
        lines.append(f"power     {status['saves_power']}: nothing runs ahead of a pause")
    for engine in status["engines"]:
        lines.append(f"engine    {engine['model']} ({engine['dtype']}): {_stands(engine)}")
        if engine["computed_by"]:
            lines.append(f"          computed by {engine['computed_by']}")
        lines += [f"          note: {note}" for note in _notes(engine)]
        if (server := engine["server"]) is not None:
            lines.append(f"          {_server(server)}")
        if engine.get("kv_budget"):
            held, most = engine["kv_bytes"] / 1e6, engine["kv_budget"] / 1e6
            lines.append(f"          texts {held:,.0f} of {most:,.0f} MB")
        lines.append(f"          queue {engine['queue']}, requests {engine['requests']}")
        lines += [f"          {line}" for line in _times(engine)] if explain else []
    for workspace in status["workspaces"]:
        lines.append(
            f"workspace {workspace['folder']}: {workspace['state']}, "
            f"{workspace['files']} files, {workspace['tokens']} tokens"
        )
        if workspace["message"]:
            lines.append(f"          {workspace['message']}")
        lines.append(f"          store {workspace['store']}, {workspace['bytes'] / 1e6:.1f} MB")
    commons = {
        store["common"]: store["common_bytes"] for store in status["workspaces"] if store["common"]
    }
    for folder, size in commons.items():
        lines.append(f"common    store {folder}, {size / 1e6:.1f} MB")
    for language, rates in status["acceptance"].items():
        percent, count = 100 * rates["rate"], rates["shown"]
        lines.append(f"taken     {percent:.0f} % of {count:.0f} suggestions in {language}")
    lines += [f"held back {uri}: {reason}" for uri, reason in status["held_back"].items()]
    return "\n".join(lines)


def _stands(engine: dict[str, Any]) -> str:
    state, message = str(engine["state"]), str(engine["message"])
    return message if message.startswith(state) else ": ".join(filter(None, [state, message]))


def _times(engine: dict[str, Any]) -> list[str]:
    """By the clock: a busy machine makes them longer."""
    p50, p95 = engine["latency_ms_p50"], engine["latency_ms_p95"]
    lines = [f"latency p50 {p50:.0f} ms p95 {p95:.0f} ms"]
    if (speedup := engine["speedup"]) is not None:
        lines.append(f"drafts: {speedup:.1f} times as fast as plain decoding, when both were timed")
    return lines


def _notes(engine: dict[str, Any]) -> list[str]:
    if engine["state"] != "ready":
        return []
    from lsp_server.editor.notices.status import NO_FILLING

    compiling = f"{engine['compiling']} is being compiled" if engine["compiling"] else ""
    return [*filter(None, ["" if engine["fills"] else NO_FILLING, engine["notice"], compiling])]


def _server(server: dict[str, Any]) -> str:
    line = f"server {server['url']}: answered by {ANSWERS[server['answers']]}"
    line += "" if server["drafted"] or server["answers"] != "server" else ", undrafted"
    if server["reason"]:
        line += f"; {server['reason']}; next try in {server['nextTryS']:.0f} s"
    return line
