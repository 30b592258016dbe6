"""What is kept of a file while connections break and servers send something else."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from text_cases import data_cases

from lsp_server.models import http_download
from lsp_server.models.http_download import MOST_TRIES, download, prepare_hub, try_again
from lsp_server.models.progress import Stopped, unheard
from lsp_server.shared.errors import RedraftError

WHOLE = bytes(range(256)) * 1200
PAGE = b"<html>" + b"log in " * 300 + b"</html>"
Answer = Callable[[BaseHTTPRequestHandler, int], None]


class Server:
    """Gives the answers of a list, one a request, and then the file as it should be. starts: where
    the requests wanted to go on."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.starts: list[int] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                start = int(self.headers.get("Range", "bytes=0-")[6:-1])
                server.starts.append(start)
                answer = server.answers.pop(0) if server.answers else send()
                answer(self, start)
                self.close_connection = True

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/file"


def send(
    cut: int | None = None,
    body: bytes = WHOLE,
    kind: str = "application/octet-stream",
    *,
    length: bool = True,
    ranges: bool = True,
    place: int | None = None,
    encoding: str = "",
) -> Answer:
    """An answer that ends after ``cut`` bytes. length: says how long it is; ranges: begins where it
    was asked to; place: says that it begins there."""

    def answer(request: BaseHTTPRequestHandler, start: int) -> None:
        first = start if ranges else 0
        sent = body[first:]
        request.send_response(206 if first else 200)
        request.send_header("Content-Type", kind)
        if encoding:
            request.send_header("Content-Encoding", encoding)
        if length:
            request.send_header("Content-Length", str(len(sent)))
        if first:
            said = first if place is None else place
            request.send_header("Content-Range", f"bytes {said}-{len(body) - 1}/{len(body)}")
        request.end_headers()
        request.wfile.write(sent[:cut])

    return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(http_download, "_BETWEEN_TRIES_S", 0.0)
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "weights.incomplete"


@pytest.mark.parametrize("cuts", [[1], [4095], [100_000], [307_199], [7, 70_000, 3], [50_000] * 4])
@pytest.mark.parametrize("length", [True, False])
def test_every_byte_that_came_is_kept(
    server: Server, file: Path, cuts: list[int], length: bool
) -> None:
    server.answers = [send(cut, length=length) for cut in cuts]

    download(server.url, file, unheard, nbytes=len(WHOLE))

    assert file.read_bytes() == WHOLE
    assert server.starts == [sum(cuts[:count]) for count in range(len(cuts) + 1)]


@pytest.mark.parametrize("here", [0, 1, 5000, 250_000])
def test_a_server_that_begins_anew_is_read_to_where_the_file_ends(
    server: Server, file: Path, here: int
) -> None:
    file.write_bytes(WHOLE[:here])
    server.answers = [send(here + 10_000, ranges=False), send(ranges=False)]

    download(server.url, file, unheard, nbytes=len(WHOLE))

    assert file.read_bytes() == WHOLE


OTHER = {
    "a page": send(body=PAGE, kind="text/html", ranges=False),
    "a page of no type": send(body=PAGE, kind="", ranges=False),
    "a page without a length": send(
        body=PAGE, kind="text/html; charset=utf-8", length=False, ranges=False
    ),
    "a page as long as this": send(body=PAGE.ljust(len(WHOLE) + 1), kind="text/html", ranges=False),
    "an error that is none": send(body=b'{"error": "busy"}', kind="application/json", ranges=False),
    "an error without a length": send(
        body=b"{}", kind="application/json", length=False, ranges=False
    ),
    "nothing": send(body=b"", ranges=False),
    "a shorter file": send(body=WHOLE[:-1], ranges=False),
    "a longer file": send(body=WHOLE + b"\0", ranges=False),
    "a longer file without a length": send(body=WHOLE + b"\0", length=False, ranges=False),
    "a compressed page": send(
        body=gzip.compress(PAGE), kind="text/html", encoding="gzip", ranges=False
    ),
}


@pytest.mark.parametrize("here", [0, 30_000])
@pytest.mark.parametrize("answer", OTHER.values(), ids=OTHER)
def test_what_is_not_the_file_changes_nothing(
    server: Server, file: Path, answer: Answer, here: int
) -> None:
    file.write_bytes(WHOLE[:here])
    server.answers = [answer]

    with pytest.raises(RedraftError, match="the server sends"):
        download(server.url, file, unheard, nbytes=len(WHOLE))

    kept = file.read_bytes()
    assert kept == WHOLE[: len(kept)]
    assert len(kept) >= here
    download(server.url, file, unheard, nbytes=len(WHOLE))
    assert file.read_bytes() == WHOLE


@pytest.mark.parametrize(
    "answer", [send(place=29_999), send(place=0), send(body=WHOLE[:-5]), send(body=WHOLE + b"more")]
)
def test_the_rest_of_another_file_is_not_taken(server: Server, file: Path, answer: Answer) -> None:
    file.write_bytes(WHOLE[:30_000])
    server.answers = [answer]

    with pytest.raises(RedraftError, match="the server sends"):
        download(server.url, file, unheard, nbytes=len(WHOLE))

    assert file.read_bytes() == WHOLE[:30_000]


@pytest.mark.parametrize("length", [True, False])
def test_a_file_of_unknown_length_ends_with_its_answer(
    server: Server, file: Path, length: bool
) -> None:
    server.answers = [send(length=length)]
    download(server.url, file, unheard)
    assert file.read_bytes() == WHOLE


def test_a_page_is_no_file_of_unknown_length(server: Server, file: Path) -> None:
    server.answers = [send(body=PAGE, kind="text/html")]
    with pytest.raises(RedraftError, match=r"sends 2113 bytes of text/html: a login page"):
        download(server.url, file, unheard)
    assert not file.exists()


def test_what_is_whole_is_not_asked_for(server: Server, file: Path) -> None:
    file.write_bytes(WHOLE)
    download(server.url, file, unheard, nbytes=len(WHOLE))
    assert server.starts == []


def test_who_stops_keeps_what_was_told(server: Server, file: Path) -> None:
    told = 0

    def stop(_step: str, done: int, _total: int) -> None:
        nonlocal told
        told = done
        if done > 100_000:
            raise Stopped("not now")

    with pytest.raises(Stopped):
        download(server.url, file, stop, nbytes=len(WHOLE))

    assert file.read_bytes() == WHOLE[:told]
    assert try_again(file) == "try again, it goes on after the 0.1 MB that came"


@pytest.mark.parametrize("length", [True, False])
def test_a_server_that_sends_nothing_is_left(server: Server, file: Path, length: bool) -> None:
    import httpx2

    server.answers = [send(0, length=length) for _ in range(MOST_TRIES + 3)]
    with pytest.raises((httpx2.TransportError, RedraftError)):
        download(server.url, file, unheard, nbytes=len(WHOLE))
    assert server.starts == [0] * MOST_TRIES
    assert try_again(file) == "try again"


@data_cases()
def test_an_empty_address_of_a_hub_is_none(
    given: str, used: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setenv("HF_ENDPOINT", given)
    prepare_hub()
    assert os.environ.get("HF_ENDPOINT") == used
