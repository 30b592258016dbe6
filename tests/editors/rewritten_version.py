"""Runs a server that says another version: rewritten_version.py VERSION COMMAND..."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from typing import IO


def main() -> int:
    """Pass bytes through until the server ends; the first message is rewritten."""
    version, *command = sys.argv[1:]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    threading.Thread(target=copy, args=(sys.stdin.buffer, server.stdin), daemon=True).start()
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        one = server.stdout.read(1)
        if not one:
            return server.wait()
        head += one
    length = int(re.search(rb"Content-Length: *(\d+)", head)[1])  # type: ignore[index]
    said = re.sub(
        rb'("name": *"redraft", *"version": *")[^"]*', rb"\g<1>" + version.encode(),
        server.stdout.read(length),
    )  # fmt: skip
    write(sys.stdout.buffer, b"Content-Length: %d\r\n\r\n" % len(said) + said)
    copy(server.stdout, sys.stdout.buffer)
    return server.wait()


def copy(source: IO[bytes], target: IO[bytes]) -> None:
    """As it comes; the target is closed at the end."""
    while chunk := source.read1(1 << 16):  # type: ignore[attr-defined]
        write(target, chunk)
    target.close()


def write(target: IO[bytes], data: bytes) -> None:
    """At once."""
    target.write(data)
    target.flush()


if __name__ == "__main__":
    sys.exit(main())
