"""Servers on this machine that speak the protocols of Hugging Face and of a package index."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "89abcdef0123456789abcdef0123456789abcdef"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Repository:
    """What one repository holds and how its server behaves. records: what the hub says of a file's
    hash where that is not its own; statuses: answers to the next requests in the place of the
    file; breaks_at: bytes of a file after which the connection is cut, once; stays: it stays open
    until this is set, before it is cut; resets: it is reset then."""

    files: dict[str, bytes]
    name: str = "owner/coder-GGUF"
    licence: str = "apache-2.0"
    token: str = ""
    gated: bool = False
    storage: str = ""
    records: dict[str, str] = field(default_factory=dict)
    without_record: tuple[str, ...] = ()
    statuses: list[int] = field(default_factory=list)
    breaks_at: int = 0
    stays: threading.Event | None = None
    resets: bool = False
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and range of each."""

    def record(self, path: str) -> str:
        """The hash that the hub says."""
        return self.records.get(path, sha256(self.files[path]))


class _Handler(BaseHTTPRequestHandler):
    repository: Repository

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        repository, path = self.repository, self.path.partition("?")[0]
        self.repository.requests.append((self.command, path, self.headers.get("Range", "")))
        known = self.headers.get("Authorization") == f"Bearer {repository.token}"
        if repository.token and not known and not repository.gated:
            self._send(401, {"X-Error-Code": "RepoNotFound"})
        elif repository.statuses:
            self._send(repository.statuses.pop(0), {"Retry-After": "0"})
        elif path == f"/api/models/{repository.name}":
            self._send(200, {"Content-Type": "application/json"}, self._listing())
        elif path.startswith(f"/{repository.name}/resolve/"):
            name = path.split("/resolve/")[1].partition("/")[2]
            if repository.gated and not known:
                self._send(401, {"X-Error-Code": "GatedRepo"})
            elif name in repository.files:
                self._send_file(name)
            else:
                self._send(404, {"X-Error-Code": "EntryNotFound"})
        else:
            self._send(404, {"X-Error-Code": "RepoNotFound"})

    def _listing(self) -> bytes:
        siblings = []
        for name, content in self.repository.files.items():
            one: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": "0" * 40}
            if name not in self.repository.without_record:
                digest = self.repository.record(name)
                one["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
            siblings.append(one)
        found = {
            "id": self.repository.name,
            "modelId": self.repository.name,
            "sha": COMMIT,
            "siblings": siblings,
            "tags": [f"license:{self.repository.licence}"],
            "cardData": {"license": self.repository.licence},
        }
        return json.dumps(found).encode()

    def _send_file(self, name: str) -> None:
        content, digest = self.repository.files[name], self.repository.record(name)
        headers = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}
        headers |= {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if self.repository.storage:
            location = self.repository.storage + self.path
            self._send(302, headers | {"Location": location})
            return
        first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        if first:
            last = len(content) - 1
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        sent, cut = content[first:], self.repository.breaks_at
        if cut and self.command == "GET":
            self.repository.breaks_at = 0
            self._send(206 if first else 200, headers, sent, cut=cut)
            return
        self._send(206 if first else 200, headers, sent)

    def _send(
        self, status: int, headers: dict[str, str], body: bytes = b"", cut: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[:cut])
            if cut and self.repository.stays is not None:
                self.repository.stays.wait(60)
            if cut and self.repository.resets:
                # Closed so, a connection is reset: what is on the way is dropped.
                time.sleep(0.5)
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.wfile.flush()
                self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def served_repository(repository: Repository, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that has it; tls: of one that speaks https."""
    with _serving(type("OneHandler", (_Handler,), {"repository": repository}), tls) as address:
        yield address


@dataclass
class Index:
    """A package index. html: in the older form of the API; files: by name."""

    package: str
    files: dict[str, bytes]
    html: bool = False
    without_hashes: bool = False
    breaks_at: int = 0
    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)


class _IndexHandler(BaseHTTPRequestHandler):
    index: Index

    def do_GET(self) -> None:
        index = self.index
        index.requests.append((self.path, self.headers.get("Range", "")))
        if index.statuses:
            self._send(index.statuses.pop(0), "text/plain", b"no")
        elif self.path == f"/simple/{index.package}/":
            self._send(200, *self._page())
        elif (name := self.path.removeprefix("/files/")) in index.files:
            content = index.files[name]
            first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
            if first > len(content):
                self._send(416, "text/plain", b"no")
                return
            place = f"bytes {first}-{len(content) - 1}/{len(content)}"
            self._send(206 if first else 200, "application/zip", content[first:], place)
        else:
            self._send(404, "text/plain", b"no")

    def _page(self) -> tuple[str, bytes]:
        digests = {
            name: "" if self.index.without_hashes else sha256(content)
            for name, content in self.index.files.items()
        }
        if self.index.html:
            lines = [
                f'<a href="../../files/{name}{"#sha256=" + digest if digest else ""}">{name}</a>'
                for name, digest in digests.items()
            ]
            return "text/html", f"<!DOCTYPE html><body>{''.join(lines)}</body>".encode()
        files = [
            {
                "filename": name,
                "url": f"../../files/{name}",
                "hashes": {"sha256": digest} if digest else {},
            }
            for name, digest in digests.items()
        ]
        kind = "application/vnd.pypi.simple.v1+json"
        return kind, json.dumps({"meta": {"api-version": "1.1"}, "files": files}).encode()

    def _send(self, status: int, kind: str, body: bytes, place: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 206:
            self.send_header("Content-Range", place)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = None
        if status in (200, 206) and kind == "application/zip" and self.index.breaks_at:
            cut, self.index.breaks_at = self.index.breaks_at, 0
        self.wfile.write(body[:cut])
        self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def served_index(index: Index, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that has it; tls: of one that speaks https."""
    with _serving(type("OneIndex", (_IndexHandler,), {"index": index}), tls) as address:
        yield f"{address}/simple"


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
