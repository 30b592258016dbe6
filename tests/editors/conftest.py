"""Real editors against the real server. run.sh installs what these tests need and runs them.

Settings, by environment:
REDRAFT_EDITORS   the folder that setup.sh filled (default: .editors)
REDRAFT_COMMAND   the server's command (default: .venv/bin/redraft)
REDRAFT_VSIX      the packed extension (default: redraft.vsix in the editors' folder)
REDRAFT_MEDIA     where screenshots and the recording go (default: a temporary folder)
REDRAFT_CHANGES   a file of changes that are typed in place of data/fresh_changes.txt
REDRAFT_PATIENCE  how many times longer everything may take on a busy machine (default: 1)
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import leftovers
from browser import Browser
from code_server import CodeServer
from drive_neovim import Neovim, OpenNeovim
from drive_vscode import Window
from installed import Installed, Server
from projects import make_project
from waiting import PATIENCE

FAILED = pytest.StashKey[bool]()
LONGEST_TEST_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is started for all tests together does not count as the first one's time.

    Tests with a browser come last: its event loop runs to the end, and Neovim's bears no other.
    """
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))
    for item in items:
        if item.get_closest_marker("editors"):
            item.add_marker(pytest.mark.timeout(LONGEST_TEST_S * PATIENCE, func_only=True))


@pytest.fixture(scope="session", autouse=True)
def whole_run() -> Iterator[None]:
    """Nothing that the tests start outlives them."""
    leftovers.begin_run()
    yield
    leftovers.end_run()


@pytest.fixture(autouse=True)
def whole_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that a test starts outlives it."""
    monkeypatch.setenv(leftovers.TEST, leftovers.mark_of(request.node.nodeid))
    yield
    leftovers.end_test(request.node.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leaves a mark on failed tests, for fixtures that then take a picture."""
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def failed(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Whether the test has failed, for the end of a fixture."""
    return lambda: request.node.stash.get(FAILED, False)


@pytest.fixture(scope="session")
def installed() -> Installed:
    """Where the editors are."""
    return Installed.from_environment()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server with a daemon of the tests' own, which all of them share as windows do."""
    folder = Path(tempfile.mkdtemp(prefix="rd-"))
    server = Server.from_environment(folder)
    try:
        server.warm_up(folder)
        yield server
    finally:
        server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures go."""
    chosen = os.environ.get("REDRAFT_MEDIA")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("media")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of the test's own."""
    return make_project(tmp_path / "project")


@pytest.fixture(params=["0.12", "0.11", "0.10"])
def version(request: pytest.FixtureRequest) -> str:
    """Neovim that draws suggestions itself, and those for which the plugin draws."""
    return str(request.param)


@pytest.fixture
def neovim(
    installed: Installed, server: Server, tmp_path: Path, version: str
) -> Iterator[OpenNeovim]:
    """Starts Neovims; all are closed at the end."""
    started: list[Neovim] = []

    def start(setup: str | None = None) -> Neovim:
        folder = tmp_path / f"editor{len(started)}"
        started.append(Neovim(installed.neovim_of(version), folder, server, setup))
        return started[-1]

    yield start
    for one in started:
        one.close()


FILES = (
    *("taken", "typed", "words", "edit", "stream", "hunks", "choose", "discard", "long", "box"),
    *("bulb", "offered", "shop", "basket", "pause", "menu", "first", "killed", "ended", "preset"),
    *("speed", "line"),
)


@pytest.fixture(scope="session")
def code_server(
    installed: Installed, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CodeServer]:
    """One VS Code for most tests."""
    started = CodeServer(installed, server, tmp_path_factory.mktemp("code-server"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for all tests; nothing outside this machine was asked for."""
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    outside = set(started.outside)
    started.close()
    assert not outside


@pytest.fixture(scope="session")
def shared_window(
    code_server: CodeServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Window:
    """The window that most tests use; every test has a file of its own in it.

    The files are there before the window: its watcher starts late and may miss new ones.
    """
    folder = make_project(tmp_path_factory.mktemp("vscode") / "project")
    for name in FILES:
        (folder / f"{name}.py").touch()
    return Window(code_server, browser, folder)


@pytest.fixture
def window(shared_window: Window, tmp_path: Path, failed: Callable[[], bool]) -> Iterator[Window]:
    """The shared window without open editors; a failed test leaves a picture."""
    yield shared_window
    if failed():
        shared_window.picture(tmp_path / "failed.png")
    shared_window.close_editors()
