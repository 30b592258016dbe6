"""Any GGUF file of the hub by the command, from a server that speaks its protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from text_cases import data_cases

sys.path.insert(0, str(Path(__file__).parent))

from hub_stand_in import COMMIT, Repository, served_repository, sha256

from lsp_server.models.fetched import fetched_models, models_folder, remove_fetched
from lsp_server.models.hub_files import find_in_hub, named_in_hub
from lsp_server.models.manifest import HubSource
from lsp_server.models.models_process import fetch_in_process
from lsp_server.shared.errors import RedraftError

Q4 = b"GGUF" + bytes(range(256)) * 90_000
Q8 = b"GGUF in eight bits" * 1000
PARTS = {f"Q6_K/coder-Q6_K-{n:05}-of-00003.gguf": b"GGUF part %d " % n * 5000 for n in (1, 2, 3)}
FILES = {
    "README.md": b"# A model",
    "coder-Q4_K_M.gguf": Q4,
    "coder-Q8_0.gguf": Q8,
    "mmproj-coder-f16.gguf": b"GGUF of a projector",
    **PARTS,
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    for name in ("HF_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    made = Repository(dict(FILES))
    with served_repository(made) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield made


def get(name: str, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """``redraft models get``, as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", "models", "get", name, *options],
        env=os.environ | more,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.fixture
def hub_here(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The hub's library asks this server, in this process: it reads the address when it is
    imported."""
    from huggingface_hub.utils import close_session

    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", os.environ["HF_ENDPOINT"])
    close_session()
    yield
    close_session()


@data_cases()
def test_which_names_stand_for_a_repository(name: str, is_one: bool) -> None:
    assert (named_in_hub(name) is not None) is is_one


@pytest.mark.parametrize(
    ("which", "content"), [("", Q4), (":q8_0", Q8), (":coder-Q8_0.gguf", Q8), (":coder-Q4_K_M", Q4)]
)
def test_a_file_is_found_by_its_name_or_its_quantisation(
    repository: Repository, which: str, content: bytes
) -> None:
    done = get(f"owner/coder-GGUF{which}")
    assert done.returncode == 0, done.stderr
    (file,) = (path for path in models_folder().glob("*.gguf"))
    assert file.read_bytes() == content
    assert "not checked by Redraft: its hash is what the hub says of it" in done.stderr
    assert f"at {COMMIT[:12]}" in done.stderr
    assert f"/owner/coder-GGUF/resolve/{COMMIT}/{file.name}" in {
        path for _, path, _ in repository.requests
    }


@data_cases()
def test_an_address_of_a_browser_names_what_it_shows(
    repository: Repository, hub_here: None, name: str, path: str
) -> None:
    found = find_in_hub(name.format("owner/coder-GGUF"))
    assert isinstance(found.origin, HubSource)
    assert found.origin.path == path


def test_a_mirror_is_known_by_its_address(repository: Repository, hub_here: None) -> None:
    mirror = os.environ["HF_ENDPOINT"]
    found = find_in_hub(f"{mirror}/owner/coder-GGUF/blob/main/coder-Q8_0.gguf")
    assert found.file == "coder-Q8_0.gguf"


PART = "big-{:05}-of-00003.gguf"


@pytest.mark.parametrize("numbers", [(1, 2), (1, 3), (2, 3), (1,), (2,), (3,)])
@pytest.mark.parametrize("folder", ["", "Q2_K/"])
def test_a_set_that_is_not_whole_is_told_when_it_is_meant_and_not_before(
    repository: Repository, hub_here: None, numbers: tuple[int, ...], folder: str
) -> None:
    repository.files = {folder + PART.format(number): b"GGUF" for number in numbers}
    with pytest.raises(
        RedraftError, match=r"big-0000\d-of-00003\.gguf is missing in its repository"
    ):
        find_in_hub("owner/coder-GGUF")
    repository.files["whole-Q4_K_M.gguf"] = Q4
    assert find_in_hub("owner/coder-GGUF").file == "whole-Q4_K_M.gguf"
    assert find_in_hub("owner/coder-GGUF:Q4_K_M").file == "whole-Q4_K_M.gguf"
    with pytest.raises(RedraftError, match="is missing in its repository; take another file"):
        find_in_hub("owner/coder-GGUF:big")


@data_cases("beside")
def test_what_lies_beside_a_model_is_none(
    repository: Repository, hub_here: None, beside: str
) -> None:
    repository.files = {beside: Q8, "coder-Q6_K.gguf": Q4}
    assert find_in_hub("owner/coder-GGUF").file == "coder-Q6_K.gguf"


@data_cases("name")
def test_a_name_that_leads_out_of_its_folder_somewhere_is_none(
    repository: Repository, hub_here: None, name: str
) -> None:
    repository.files = {name: Q8}
    with pytest.raises(RedraftError, match="has no GGUF file"):
        find_in_hub("owner/coder-GGUF")
    repository.files["coder-Q6_K.gguf"] = Q4
    assert find_in_hub("owner/coder-GGUF").file == "coder-Q6_K.gguf"


def test_one_name_in_two_folders_is_two_models(repository: Repository) -> None:
    repository.files = {"Q8/coder.gguf": Q8, "BF16/coder.gguf": Q4, "BF16/CODER.gguf": b"GGUF"}
    assert get("owner/coder-GGUF:Q8/coder.gguf").returncode == 0
    for other in ("BF16/coder.gguf", "BF16/CODER.gguf"):
        refused = get(f"owner/coder-GGUF:{other}")
        assert refused.returncode == 1
        assert "owner/coder-GGUF:Q8/coder has a file of the same name" in refused.stderr
    assert (models_folder() / "coder.gguf").read_bytes() == Q8
    again = get("owner/coder-GGUF:Q8/coder.gguf")
    assert (again.returncode, "is here already" in again.stderr) == (0, True)
    remove_fetched("owner/coder-GGUF:Q8/coder")
    assert get("owner/coder-GGUF:BF16/coder.gguf").returncode == 0
    assert (models_folder() / "coder.gguf").read_bytes() == Q4


def test_all_parts_come_or_none(repository: Repository) -> None:
    broken = "Q6_K/coder-Q6_K-00003-of-00003.gguf"
    repository.records[broken] = "0" * 64
    refused = get("owner/coder-GGUF:Q6_K")
    assert refused.returncode == 1
    assert "is not owner/coder-GGUF:coder-Q6_K-00001-of-00003" in refused.stderr
    assert list(models_folder().glob("*.gguf")) == []
    before = len(repository.requests)
    del repository.records[broken]
    done = get("owner/coder-GGUF:Q6_K")
    assert done.returncode == 0, done.stderr
    assert "in 3 files" in done.stderr
    for path, content in PARTS.items():
        assert (models_folder() / Path(path).name).read_bytes() == content
    gets = [path for method, path, _ in repository.requests[before:] if method == "GET"]
    assert [path for path in gets if path.endswith("gguf")] == [
        f"/owner/coder-GGUF/resolve/{COMMIT}/{broken}"
    ], "the two that had come were not asked for again"
    assert {state["name"] for state in fetched_models().values()} == {
        "owner/coder-GGUF:coder-Q6_K-00001-of-00003"
    }
    assert len(remove_fetched("q6_k")) == 3
    assert list(models_folder().glob("*.gguf")) == []


def test_what_is_not_clear_is_said(repository: Repository, hub_here: None) -> None:
    assert "nothing of it is called Q2_K; give one of owner/coder-GGUF: Q6_K/" in (
        get("owner/coder-GGUF:Q2_K").stderr
    )
    assert "nothing is not one of those that can be fetched" in get("nothing").stderr

    def refused(name: str = "owner/coder-GGUF") -> str:
        with pytest.raises(RedraftError) as caught:
            find_in_hub(name)
        return str(caught.value)

    repository.files = {"a-Q5_K_M.gguf": Q8, "b-Q5_K_M.gguf": Q8}
    assert "Q5_K_M may be any of them; give one of" in refused("owner/coder-GGUF:Q5_K_M")
    assert "it has several files; give one of" in refused()
    repository.files = {"model.safetensors": Q8}
    assert "has no GGUF file" in refused()
    repository.files = {"a-00001-of-00002.gguf": Q8}
    assert "a-00002-of-00002.gguf is missing in its repository" in refused()
    assert "is not there, or needs a token" in refused("owner/nothing")


def test_a_file_of_which_the_hub_says_no_hash_is_not_taken(repository: Repository) -> None:
    repository.without_record = ("coder-Q8_0.gguf",)
    assert "has no hash of coder-Q8_0.gguf" in get("owner/coder-GGUF:Q8_0").stderr
    assert not models_folder().exists()


@pytest.mark.parametrize("resets", [False, True])
def test_a_transfer_that_breaks_goes_on_by_itself(repository: Repository, resets: bool) -> None:
    repository.breaks_at, repository.resets = 12_000_000, resets
    done = get("owner/coder-GGUF:Q4_K_M")
    assert done.returncode == 0, done.stderr
    assert (models_folder() / "coder-Q4_K_M.gguf").read_bytes() == Q4
    ranges = [asked for method, _, asked in repository.requests if method == "GET" and asked]
    (start,) = (int(asked[6:-1]) for asked in ranges)
    # What is on its way when a connection is reset may be lost.
    assert 0 < start <= 12_000_000 if resets else start == 12_000_000


def test_a_server_that_had_too_many_requests_is_said(repository: Repository) -> None:
    """Each request is tried once more by hand; those for a file wait and go on by themselves."""
    repository.statuses = [429]
    done = get("owner/coder-GGUF:Q8_0")
    assert done.returncode == 1
    assert "too many requests (429); try again later" in done.stderr
    assert get("owner/coder-GGUF:Q8_0").returncode == 0


def test_a_file_may_lie_on_another_server(repository: Repository) -> None:
    storage = Repository(dict(FILES))
    with served_repository(storage) as repository.storage:
        assert get("owner/coder-GGUF:Q8_0").returncode == 0
    assert [method for method, path, _ in storage.requests if path.endswith("gguf")] == ["GET"]


def test_a_repository_of_which_one_agrees_to_the_terms_first(repository: Repository) -> None:
    repository.token, repository.gated = "hf_of_mine", True
    refused = get("owner/coder-GGUF:Q8_0")
    assert refused.returncode == 1
    assert (
        "owner/coder-GGUF asks for its licence to be accepted: do that on its page"
        in refused.stderr
    )
    assert get("owner/coder-GGUF:Q8_0", HF_TOKEN="hf_of_mine").returncode == 0


def test_a_private_repository_wants_a_token(repository: Repository) -> None:
    repository.token = "hf_of_mine"
    assert "or needs a token: set HF_TOKEN" in get("owner/coder-GGUF:Q8_0").stderr
    assert get("owner/coder-GGUF:Q8_0", HF_TOKEN="hf_of_mine").returncode == 0


def test_a_licence_that_limits_use_is_asked_for(repository: Repository) -> None:
    repository.licence = "cc-by-nc-4.0"
    refused = get("owner/coder-GGUF:Q8_0")
    assert refused.returncode == 1
    assert "licence (cc-by-nc-4.0) may limit use" in refused.stderr
    assert "Give --accept-licence to agree" in refused.stderr
    assert not models_folder().exists()
    assert get("owner/coder-GGUF:Q8_0", "--accept-licence").returncode == 0
    again = get("owner/coder-GGUF:Q8_0")
    assert (again.returncode, "is here already" in again.stderr) == (0, True), "and asked once"


def test_two_models_of_one_file_name_do_not_replace_each_other(repository: Repository) -> None:
    assert get("owner/coder-GGUF:Q8_0").returncode == 0
    repository.name = "another/coder-GGUF"
    repository.files["coder-Q8_0.gguf"] = b"GGUF of somebody else"
    refused = get("another/coder-GGUF:Q8_0")
    assert refused.returncode == 1
    assert "owner/coder-GGUF:coder-Q8_0 has a file of the same name" in refused.stderr
    assert (models_folder() / "coder-Q8_0.gguf").read_bytes() == Q8


def test_progress_can_be_read_by_a_program(repository: Repository) -> None:
    done = get("owner/coder-GGUF:Q8_0", "--progress", "json")
    lines = done.stdout.splitlines()
    assert f'{{"step": "fetching", "done": {len(Q8)}, "total": {len(Q8)}}}' in lines
    assert lines[-1] == f'{{"file": "{models_folder() / "coder-Q8_0.gguf"}"}}'
    assert sha256(Q8) == sha256((models_folder() / "coder-Q8_0.gguf").read_bytes())


def test_a_server_has_another_process_fetch_a_model(repository: Repository) -> None:
    shown: list[tuple[str, int, int]] = []
    wanted = "owner/coder-GGUF:Q8_0"
    file = asyncio.run(fetch_in_process(wanted, lambda *step: shown.append(step)))
    assert file.read_bytes() == Q8
    assert ("fetching", len(Q8), len(Q8)) in shown
    with pytest.raises(RedraftError, match=r"^nothing of it is called Q2_K"):
        asyncio.run(fetch_in_process("owner/coder-GGUF:Q2_K"))


def fetches(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):  # or it has just ended
        return "get" in process.cmdline()
    return False


def test_a_fetch_that_nobody_waits_for_ends_with_its_process(repository: Repository) -> None:
    repository.breaks_at, repository.stays = 12_000_000, threading.Event()
    wanted = "owner/coder-GGUF:Q4_K_M"

    async def scene() -> None:
        task = asyncio.ensure_future(fetch_in_process(wanted))
        while sum(file.stat().st_size for file in models_folder().rglob("weights.*")) < 12_000_000:
            assert not task.done(), task
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    repository.stays.set()
    assert not (models_folder() / "coder-Q4_K_M.gguf").exists()
    assert [child for child in psutil.Process().children(recursive=True) if fetches(child)] == []
    assert asyncio.run(fetch_in_process(wanted)).read_bytes() == Q4
    assert repository.requests[-1][2] == "bytes=12000000-"
