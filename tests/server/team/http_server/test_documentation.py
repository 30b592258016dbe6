"""The lines of the documentation are run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from served import KEY, ROOT, Served

README = ROOT / "lsp_server" / "team" / "http_server" / "README.md"
LINES = re.findall(r"^curl .*$", README.read_text("utf-8"), re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_lines_for_curl_work(server: Served) -> None:
    assert len(LINES) >= 10
    for line in LINES:
        done = subprocess.run(
            ["bash", "-c", line],
            env={**os.environ, "URL": server.url, "KEY": KEY},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, line
        assert done.stdout.strip(), line
        assert "error" not in done.stdout, (line, done.stdout)


def test_the_documentation_names_every_route(server: Served) -> None:
    text = README.read_text("utf-8")
    for route in ("/v1/completions", "/v1/chat/completions", "/infill", "/health", "/v1/models"):
        assert f"`GET {route}`" in text or f"`POST {route}`" in text
        assert server.post(route, {}).status_code != 404
