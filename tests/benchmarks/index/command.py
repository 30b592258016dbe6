"""``index``: building, looking up, following changes and reopening the datastore."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from lsp_server.commands.cli.progress import index_progress
from lsp_server.engine.workspaces import text_tokenizer
from lsp_server.shared.errors import BenchError
from repo_index.datastore import Datastore
from repo_index.indexer import Indexer, Refreshed
from repo_index.ordering import stream_type
from repo_index.overlay import Overlay
from repo_index.segment import Segment
from repo_index.source_tree import FolderTree
from repo_index.store_writer import StoreWriter
from repo_index.tokens import TextTokenizer
from repo_index.warming import warm_up
from tests.benchmarks.index.workload import (
    contexts_of,
    enlarge,
    enlarge_tokens,
    read_repository,
    write_many,
)
from tests.benchmarks.report import machine, publish, table, versions

ROOT = Path(__file__).resolve().parents[3]
_COLUMNS = {
    "tokens": "tokens",
    "build_s": "build s",
    "tokens_per_s": "tokens/s",
    "lookup_us_p50": "lookup us p50",
    "lookup_us_p95": "p95",
    "resident_mb": "resident MB",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``tests.benchmarks index``."""
    parser.add_argument("--repo", type=Path, required=True, help="repository to index (a copy)")
    parser.add_argument(
        "--synthetic-tokens", type=int, default=0, metavar="N", help="enlarge it to N tokens"
    )
    parser.add_argument(
        "--common-tokens", type=int, default=0, metavar="N", help="beside N tokens of common code"
    )
    parser.add_argument("--lookups", type=int, default=5000, help="contexts to look up")
    parser.add_argument("--saves", type=int, default=60, help="files to save")
    parser.add_argument("--edits", type=int, default=300, help="edits of an open buffer")
    parser.add_argument(
        "--files", type=int, default=10_000, help="files of the workspace that is opened again"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads that sort")
    parser.add_argument("--model", help="folder of the model whose tokens are indexed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="OUT", help="write the document there, - for stdout")


def run(args: argparse.Namespace) -> int:
    """Measure everything on a copy of the repository in a temporary folder."""
    if not args.repo.is_dir():
        raise BenchError(f"{args.repo} is no folder; give a repository to --repo")
    tokenizer = text_tokenizer(args.model)
    warm_up(tokenizer)
    with tempfile.TemporaryDirectory(prefix="redraft-bench-") as folder:
        bench = _Bench(args, tokenizer, Path(folder))
        document = bench.measure()
    publish(document, args.json, [table("index", {"redraft": document}, _COLUMNS)])
    return 0


class _Bench:
    def __init__(self, args: argparse.Namespace, tokenizer: TextTokenizer, folder: Path) -> None:
        self.args = args
        self.tokenizer = tokenizer
        self.folder = folder
        self.work = folder / "work"
        self.store = folder / "store"
        self.common: Path | None = None
        self.console = Console(stderr=True)

    def measure(self) -> dict[str, Any]:
        texts = self._make_workspace()
        document: dict[str, Any] = {"files": len(texts)}
        document.update(self._build(list(texts.values())))
        ids = self.tokenizer.encode(list(texts.values()))
        self._make_common(ids)
        contexts = self.folder / "contexts.npy"
        np.save(contexts, contexts_of(ids, self.args.lookups, self.args.seed))
        document.update(self._look_up(contexts))
        document.update(self._save())
        document.update(self._edit())
        document.update(self._reopen(list(texts.values())))
        document.update(machine=machine(), versions=versions(), seed=self.args.seed)
        return document

    def _make_workspace(self) -> dict[str, str]:
        texts = read_repository(self.args.repo)
        if not texts:
            raise BenchError(f"{self.args.repo} holds no text file; give another to --repo")
        real = sum(map(len, self.tokenizer.encode(list(texts.values()))))
        if self.args.synthetic_tokens > real:
            sample = "".join(enlarge(texts, 400_000, self.args.seed).values())
            ratio = len(sample) / len(self.tokenizer.encode([sample])[0])
            missing = int((self.args.synthetic_tokens - real) * ratio)
            texts |= enlarge(texts, missing, self.args.seed + 1)
        for path, text in texts.items():
            place = self.work / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
        return {path: texts[path] for path in sorted(texts)}

    def _open(self) -> Indexer:
        return Indexer(FolderTree(self.work), self.store, self.tokenizer, threads=self.args.threads)

    def _build(self, texts: list[str]) -> dict[str, Any]:
        """The first indexing, and the tokenizer alone on the same texts in the same batches."""
        self.tokenizer.encode(texts[:20])
        started, cpu = time.perf_counter(), time.process_time()
        indexer = self._open()
        with index_progress(self.console, "indexing") as report:
            done = indexer.refresh(progress=report)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        started = time.perf_counter()
        indexer.merge(everything=True)
        merged = time.perf_counter() - started
        status = indexer.status()
        indexer.close()
        alone = alone_cpu = 0.0
        batch: list[str] = []
        for i, text in enumerate(texts):
            batch.append(text)
            if sum(map(len, batch)) > 1_200_000 or i + 1 == len(texts):
                started, began = time.perf_counter(), time.process_time()
                self.tokenizer.encode(batch)
                alone += time.perf_counter() - started
                alone_cpu += time.process_time() - began
                batch = []
        return {
            "tokens": done.tokens,
            "build_s": seconds,
            "tokens_per_s": done.tokens / seconds,
            "tokenizer_tokens_per_s": done.tokens / alone,
            "of_tokenizer": alone / seconds,
            "of_tokenizer_cpu": alone_cpu / cpu,
            "merge_s": merged,
            "bytes_per_token": status.bytes / max(1, status.tokens),
        }

    def _make_common(self, ids: list[NDArray[np.int32]]) -> None:
        if not self.args.common_tokens:
            return
        made = enlarge_tokens(ids, self.args.common_tokens, self.args.seed + 2)
        dtype = stream_type(self.tokenizer.vocabulary_size)
        segment = Segment.from_files(made, dtype=dtype, threads=self.args.threads)
        self.common = self.folder / "common"
        self.common.mkdir()
        writer = StoreWriter(self.common, self.tokenizer.sha256)
        writer.commit(segment, complete=True)
        writer.close()

    def _look_up(self, contexts: Path) -> dict[str, Any]:
        found = _child(
            "tests.benchmarks.index.reader",
            *(str(self.store), str(self.common or ""), self.tokenizer.sha256),
            *(str(self.tokenizer.vocabulary_size), str(contexts)),
        )
        assert not found.pop("problems")
        found["mapped_tokens"] = found.pop("tokens")
        found["lookup_segments"] = found.pop("segments")
        return found

    def _save(self) -> dict[str, Any]:
        """A file of 1,000 lines is written; until a lookup finds what is new in it."""
        indexer = self._open()
        datastore = Datastore(self.store, self.tokenizer.sha256, common=self.common)
        lines = _lines(self.work, 1000)
        times = []
        for i in range(self.args.saves):
            marker = f"saved_marker_{i}_{i * 7919} = {i}"
            lines[1 + i * 13 % (len(lines) - 2)] = marker
            (self.work / "saved.py").write_text("\n".join(lines))
            wanted = self.tokenizer.encode(["\n" + marker])[0]
            started, cpu = time.perf_counter(), time.process_time()
            indexer.refresh(["saved.py"])
            datastore.reload_if_changed()
            self._assert_found(datastore, wanted)
            times.append((time.perf_counter() - started, time.process_time() - cpu))
            # In the background of the real process.
            indexer.merge()
        indexer.close()
        return _percentiles("save_visible", times)

    def _edit(self) -> dict[str, Any]:
        """A buffer of 5,000 lines changes; until a lookup finds what is new in it."""
        overlay = Overlay(self.tokenizer)
        datastore = Datastore(
            self.store, self.tokenizer.sha256, common=self.common, overlay=overlay
        )
        lines = _lines(self.work, 5000)
        overlay.set_buffer("open.py", "\n".join(lines))
        datastore.snapshot()
        times = []
        for i in range(self.args.edits):
            marker = f"edited_marker_{i}_{i * 7919} = {i}"
            lines[1 + i * 1237 % (len(lines) - 2)] = marker
            text = "\n".join(lines)
            wanted = self.tokenizer.encode(["\n" + marker])[0]
            started, cpu = time.perf_counter(), time.process_time()
            overlay.set_buffer("open.py", text)
            self._assert_found(datastore, wanted)
            times.append((time.perf_counter() - started, time.process_time() - cpu))
        return _percentiles("edit_visible", times)

    @staticmethod
    def _assert_found(datastore: Datastore, wanted: NDArray[np.int32]) -> None:
        matches = datastore.snapshot().lookup(wanted[:-1])
        assert matches.lengths[0] == min(16, len(wanted) - 1)
        assert wanted[-1] in matches.tokens[:, 0]

    def _reopen(self, texts: list[str]) -> dict[str, Any]:
        """Another workspace, of many files: indexed, closed, and opened again unchanged."""
        work, store = self.folder / "many", self.folder / "many-store"
        write_many(work, texts, self.args.files, self.args.seed)

        def refresh() -> Refreshed:
            indexer = Indexer(FolderTree(work), store, self.tokenizer)
            try:
                return indexer.refresh()
            finally:
                indexer.close()

        files = len(refresh().indexed)
        # Files written within the last tick of the file system's clock are read once more.
        refresh()
        started, cpu = time.perf_counter(), time.process_time()
        done = refresh()
        Datastore(store, self.tokenizer.sha256, common=self.common)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        assert not done.indexed
        return {"reopen_files": files, "reopen_s": seconds, "reopen_cpu_s": cpu}


def _percentiles(name: str, times: list[tuple[float, float]]) -> dict[str, float]:
    """Milliseconds by the clock and of the processor, which a busy machine does not lengthen."""
    wall, cpu = np.array(times).T * 1e3
    return {
        f"{name}_ms_p50": float(np.percentile(wall, 50)),
        f"{name}_ms_p95": float(np.percentile(wall, 95)),
        f"{name}_cpu_ms_p95": float(np.percentile(cpu, 95)),
    }


def _lines(work: Path, count: int) -> list[str]:
    """Some lines of the workspace's files."""
    lines: list[str] = []
    for path in sorted(work.rglob("*.py")):
        lines += path.read_text("utf-8").splitlines()
        if len(lines) >= count:
            break
    if not lines:
        raise BenchError("the repository holds no Python file; give another to --repo")
    return (lines * (count // len(lines) + 1))[:count]


def _child(module: str, *arguments: str) -> dict[str, Any]:
    """What a measuring process prints."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BenchError(f"{module} failed ({last})")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
