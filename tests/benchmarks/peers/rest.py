"""REST by its own retriever, in this process or in one of the Python that its wheel is made for."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest
from tests.benchmarks.peers import rest_retriever
from tests.benchmarks.peers.errors import PeerUnavailable
from tests.draft_trees import merged

INTERPRETER = "REDRAFT_REST_PYTHON"
"""Environment variable: a Python in which REST's draftretriever is installed."""


class AnyRetriever(Protocol):
    def write(self, index: str, tokens: str, vocabulary: int) -> None: ...
    def open(self, index: str) -> None: ...
    def draft(self, context: list[int], choices: int) -> list[list[int]]: ...
    def timed(self, contexts: list[list[int]], choices: int) -> list[float]: ...
    def resident(self) -> int: ...


class _RetrieverProcess:
    """The retriever in another interpreter, called over its standard input and output."""

    def __init__(self, python: str) -> None:
        try:
            self._process = subprocess.Popen(
                [python, rest_retriever.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise PeerUnavailable(f"{INTERPRETER}={python} does not start: {error}") from error
        first = self._read()
        if "error" in first:
            raise PeerUnavailable(f"{INTERPRETER}={python}: {first['error']}")

    def write(self, index: str, tokens: str, vocabulary: int) -> None:
        self._call("write", index, tokens, vocabulary)

    def open(self, index: str) -> None:
        self._call("open", index)

    def draft(self, context: list[int], choices: int) -> list[list[int]]:
        paths: list[list[int]] = self._call("draft", context, choices)
        return paths

    def timed(self, contexts: list[list[int]], choices: int) -> list[float]:
        times: list[float] = self._call("timed", contexts, choices)
        return times

    def resident(self) -> int:
        return int(self._call("resident"))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _call(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([name, arguments]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerUnavailable("the process of REST's retriever died") from None
        return self._read()["result"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerUnavailable("the process of REST's retriever died")
        answer: dict[str, Any] = json.loads(line)
        return answer


class RestStore:
    """REST's index of common code and of the repository of the moment, in a temporary folder.

    An index file of REST is a row of chunks that are searched together, so the common chunk is
    written once and the repository's is put behind it.
    """

    def __init__(self, common: Mapping[str, TokenArray], vocabulary: int) -> None:
        """Raises PeerUnavailable where REST's package cannot be run or holds no such vocabulary."""
        if vocabulary > 1 << 16:
            raise PeerUnavailable(
                f"REST's index stores 16 bits for a token and the vocabulary has {vocabulary}"
            )
        self._vocabulary = vocabulary
        self.retriever = start_retriever()
        self._folder = tempfile.TemporaryDirectory(prefix="redraft-rest-")
        self._common = self._written("common", common) if common else None

    def know(self, files: Mapping[str, TokenArray]) -> None:
        """Index ``files`` (path to int32 [n]) together with the common code."""
        whole = Path(self._folder.name, "whole.idx")
        with whole.open("wb") as out:
            for chunk in (self._common, self._written("repository", files)):
                if chunk is not None:
                    with chunk.open("rb") as part:
                        shutil.copyfileobj(part, out)
        self.retriever.open(str(whole))

    def close(self) -> None:
        """Delete the index and end the process of the retriever, if there is one."""
        if isinstance(self.retriever, _RetrieverProcess):
            self.retriever.close()
        self._folder.cleanup()

    def _written(self, name: str, files: Mapping[str, TokenArray]) -> Path:
        tokens, index = (Path(self._folder.name, f"{name}.{kind}") for kind in ("ids", "idx"))
        np.concatenate([*files.values(), np.empty(0, np.int32)]).astype(np.int32).tofile(tokens)
        self.retriever.write(str(index), str(tokens), self._vocabulary)
        return index


class RestDrafter:
    """REST's rule on REST's retriever."""

    name = "rest"

    def __init__(self, store: RestStore) -> None:
        self._store = store
        self._end: list[int] = []

    def know(self, files: Mapping[str, TokenArray]) -> None:
        """Repository of the coming request, path to int32 [n]."""
        self._store.know(files)

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        self._end = request.prompt[-rest_retriever.LONGEST :].tolist()

    def draft(self, max_nodes: int) -> DraftTree:
        """REST's tree, of at most 64 nodes."""
        choices = min(max_nodes, rest_retriever.CHOICES)
        paths = self._store.retriever.draft(self._end, choices)
        branches = [np.array(path, np.int32) for path in paths]
        return merged(branches, Source.COMMON).prefix(max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``."""
        self._end = [*self._end, *tokens.tolist()][-rest_retriever.LONGEST :]


def start_retriever() -> AnyRetriever:
    """In this process where REST's package is installed, else in the interpreter named.

    Raises PeerUnavailable.
    """
    try:
        return rest_retriever.Retriever()
    except ImportError as error:
        python = os.environ.get(INTERPRETER)
        if not python:
            raise PeerUnavailable(
                f"rest needs REST's package draftretriever ({error}); see "
                f"tests/benchmarks/peers/README.md, or set {INTERPRETER} to a Python that has it"
            ) from error
        return _RetrieverProcess(python)
