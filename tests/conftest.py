"""Order of the suite: quick tests first, those that drive real processes last; where workers share
the tests, those first, which wait most.

The tests may import the modules beside this file.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from own_folder import own_folder

# Nothing counts here that the user chose or that was measured before, and nothing is left behind.
_FOLDERS = ExitStack()
atexit.register(_FOLDERS.close)
_HOME = _FOLDERS.enter_context(own_folder("tests"))
for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
    os.environ[f"XDG_{kind}_HOME"] = str(_HOME / kind.lower())
_THE_USERS = """XDG_RUNTIME_DIR HF_ENDPOINT HF_HOME HF_HUB_CACHE HF_HUB_OFFLINE LLAMA_CACHE
    OLLAMA_MODELS GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE REDRAFT_DATA REDRAFT_IDLE_EXIT_S
    REDRAFT_LOG_DIR REDRAFT_MODELS REDRAFT_SERVER_KEY REDRAFT_SERVER_URL"""
for name in _THE_USERS.split():
    os.environ.pop(name, None)
os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
# Workers share the cores: torch's threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Torch sets it where it is missing, in whichever test first brings its compiler along.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(_HOME / "inductor")

from compiled_code import use_code_of_tests  # noqa: E402
from seeds import Amount  # noqa: E402
from small_model import choose_small_model  # noqa: E402

from lsp_server.shared.network import use_certificates  # noqa: E402
from operating_system.file_lock import LockFile  # noqa: E402

use_certificates()
use_code_of_tests()
choose_small_model(_HOME / "config")


@pytest.fixture(autouse=True)
def _process_unchanged() -> Iterator[None]:
    """A test that changes its process changes it back: which tests share one is chance. Handlers of
    signals and of the log are changed back here: whoever starts a server sets them."""
    environment, folder = _environment(), Path.cwd()
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    log = logging.getLogger()
    level, files = log.level, log.handlers[:]
    yield
    after, now = _environment(), Path.cwd()
    os.chdir(folder)
    for name in after.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for one in log.handlers[:]:
        if one not in files:
            log.removeHandler(one)
            one.close()
    log.setLevel(level)
    # By their names: what a variable says may be a secret.
    names = environment.keys() | after.keys()
    changed = {name for name in names if environment.get(name) != after.get(name)}
    assert changed <= MAY_BE_SET
    assert now == folder


MAY_BE_SET = {"HF_HUB_DISABLE_TELEMETRY"}
"""Whatever asks the hub sets it."""


def _environment() -> dict[str, str]:
    """Without what pytest itself sets at each step of a test."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


LAST = ("e2e", "editors")
LONG_S = 3400
SLOW = ("benchmarks", "editors", "release", "training")
"""Folders whose tests `make test` leaves to `make test-all`."""


@pytest.fixture(scope="session")
def default_model() -> Path:
    """The default model's file, which ``make test-model`` fetches."""
    file = os.environ.get("REDRAFT_TEST_DEFAULT", "")
    assert file, "run `make test-model`, or name the file in REDRAFT_TEST_DEFAULT"
    return Path(file)


@pytest.fixture
def amount(request: pytest.FixtureRequest) -> Amount:
    """``amount(few, most)`` is the first, where long tests are asked for (``-m long``) the second
    or, by REDRAFT_LONG_SHARE, a share of it."""
    if request.node.get_closest_marker("long") is None:
        return lambda few, most: few
    share = float(os.environ.get("REDRAFT_LONG_SHARE", "1"))
    return lambda few, most: max(few, round(most * share))


def pytest_sessionfinish() -> None:
    """Remove the folders of daemons that tests killed: none is held by a process."""
    for folder in Path(tempfile.gettempdir()).glob(f"redraft-{getattr(os, 'getuid', int)()}-*"):
        locks = [LockFile(path) for path in folder.iterdir() if path.suffix in (".lock", ".start")]
        taken = [lock for lock in locks if lock.acquire()]
        if len(taken) == len(locks):
            shutil.rmtree(folder, ignore_errors=True)
        for lock in taken:
            lock.release()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks by folder and by fixture; the order."""
    for item in items:
        parts = Path(item.path).parts
        if any(name in parts for name in SLOW):
            item.add_marker("slow")
        if config.option.markexpr == "long" and "amount" in getattr(item, "fixturenames", ()):
            item.add_marker("long")
            item.add_marker(pytest.mark.timeout(LONG_S))
    shared = "PYTEST_XDIST_WORKER" in os.environ
    items.sort(key=lambda item: any(name in Path(item.path).parts for name in LAST) != shared)
