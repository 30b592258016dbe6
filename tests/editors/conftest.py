"""Real editors against the real server. run.sh installs what these tests need and runs them.

Settings, by environment:
REDRAFT_EDITORS   the folder that setup.sh filled (default: .editors)
REDRAFT_COMMAND   the server's command (default: .venv/bin/redraft)
REDRAFT_VSIX      the packed extension (default: redraft.vsix in the editors' folder)
REDRAFT_MEDIA     where screenshots and the recording go (default: a temporary folder)
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

from installed import Installed, Server

FAILED = pytest.StashKey[bool]()


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
