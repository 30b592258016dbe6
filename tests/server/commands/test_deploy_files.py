"""The files under ``deploy/`` start the server with options that it has."""

from __future__ import annotations

import argparse
import configparser
import json
import re
import shlex
from pathlib import Path

from lsp_server.commands.cli import deploy, keys, serve_http

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
SERVER_PAGE = ROOT / "lsp_server" / "team" / "http_server" / "README.md"


def parsed(words: list[str]) -> argparse.Namespace:
    """Options of a command line from ``redraft`` on; wrong ones end the test."""
    place = next(number for number, word in enumerate(words) if word.endswith("redraft"))
    command, *options = words[place + 1 :]
    module = {"serve-http": serve_http, "keys": keys, "deploy": deploy}[command]
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return parser.parse_args(options)


def test_the_systemd_unit() -> None:
    text = (DEPLOY / "redraft-server.service").read_text("utf-8")
    unit = configparser.RawConfigParser(strict=False)
    unit.read_string(text.replace("\\\n", " "))
    args = parsed(shlex.split(unit["Service"]["ExecStart"]))
    assert args.keys.is_absolute()
    assert args.admin.startswith("127.0.0.1:")
    (added,) = re.findall(r"/opt/redraft/bin/redraft keys .*", text)
    assert parsed(shlex.split(added)).keys == args.keys


def test_the_pages_name_options_that_there_are() -> None:
    lines: list[str] = []
    for page in (DEPLOY / "README.md", SERVER_PAGE):
        text = " ".join(page.read_text("utf-8").replace("…", "x").split("\n"))
        lines += re.findall(
            r"[` ](redraft (?:deploy|keys|serve-http) [^`#|&]*?)(?=`|#| redraft|$)", text
        )
    assert len(lines) > 8
    for line in lines:
        parsed(shlex.split(line))


def test_the_container_file() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    entry = json.loads(text.partition("ENTRYPOINT ")[2])
    assert entry[:2] == ["/bin/sh", "-c"]
    words = shlex.split(entry[2].partition("exec ")[2])
    args = parsed([word for word in words if word != "$@"])
    assert (args.host, args.port) == ("0.0.0.0", 8017)
    assert "EXPOSE 8017" in text
