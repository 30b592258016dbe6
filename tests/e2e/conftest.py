"""One private home for all end-to-end tests: the model's profile is measured once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from own_folder import own_folder
from python_environments import python_environment

from .client import PYTHON, DaemonDriver, Driver, command, private_environment, profile
from .new_account import TEXT

READY_S = 240

SHAPES = '''\
"""Shapes and their areas."""


class Rectangle:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        """Area of the rectangle."""
        return self.width * self.height


def scale(rectangle, factor):
    """Scale a rectangle by a factor."""
    width = rectangle.width * factor
    height = rectangle.height * factor
    return Rectangle(width, height)


def total_area(rectangles):
    """Sum of the areas of all rectangles."""
    total = 0
    for rectangle in rectangles:
        total += rectangle.area()
    return total
'''


RECORDER = """
import os, socket, sys

def noted(event, arguments):
    if event == "socket.__new__":
        ours = arguments[1] == socket.AF_UNIX
    elif event in ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"):
        ours = arguments[0].family == socket.AF_UNIX
    else:
        names = event.startswith("socket.get") and event != "socket.gethostname"
        ours = event != "os.system" and not names
    if not ours:
        with open(os.environ["REDRAFT_TEST_NOTES"], "a") as notes:
            notes.write(f"{event} {arguments[1:]!r} by {sys.orig_argv!r}\\n")

sys.addaudithook(noted)
"""
"""Runs in every process of the session: notes whoever opens a socket that other machines could be
reached by, or asks for an address."""


@pytest.fixture(scope="session")
def environment() -> Iterator[dict[str, str]]:
    """A private home. Its daemon is stopped at the end."""
    with own_folder("e2e") as folder:
        python = python_environment(folder / "python", start=RECORDER)
        made = private_environment(
            folder, **{PYTHON: str(python)}, REDRAFT_TEST_NOTES=str(folder / "network")
        )
        yield made
        command(made, "stop")


@pytest.fixture
def own_environment() -> Iterator[dict[str, str]]:
    """A private home of one test, which may change what its user chose: an editor of another test
    would take that up."""
    with own_folder("e2e") as folder:
        made = private_environment(folder)
        yield made
        command(made, "stop")


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "shapes.py").write_text(SHAPES)
    return folder


@pytest.fixture(scope="session")
def first(environment: dict[str, str], workspace: Path) -> Iterator[Driver]:
    """The client that starts the daemon and keeps it; the model is loaded when it is given."""
    driver = Driver(environment)
    driver.initialize(profile("vscode"), workspace)
    driver.wait_for_state("ready", timeout=READY_S)
    yield driver
    driver.close()


@pytest.fixture
def connect(
    environment: dict[str, str], first: Driver, workspace: Path
) -> Iterator[Callable[..., Driver]]:
    """Makes further clients of the warm daemon, some with a front of their own; they are closed at
    the end of the test."""
    drivers: list[Driver] = []

    def make(
        name: str = "vscode", initialize: bool = True, front: bool = False, **options: Any
    ) -> Driver:
        driver = Driver(environment) if front else DaemonDriver(environment)
        drivers.append(driver)
        if initialize:
            driver.initialize({**profile(name), **options}, workspace)
            driver.wait_for_state("ready", "indexing", timeout=READY_S)
        return driver

    yield make
    for driver in drivers:
        driver.kill()


@pytest.fixture
def new_home() -> Iterator[Path]:
    """A home in which the user has models and files, and no Redraft yet."""
    with own_folder("e2e-home") as folder:
        home = folder / "home"
        for name in (
            ".cache/huggingface/hub/models--some--model/snapshots/1/model.gguf",
            ".cache/pip/wheel",
            ".ollama/models/manifests/registry/model",
            ".config/editor/settings.json",
            "work/total.py",
        ):
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(TEXT)
        (folder / "temporary").mkdir()
        yield home


@pytest.fixture
def new_account(new_home: Path) -> dict[str, str]:
    """As in a new account: a home, and nothing that says where anything lies."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REDRAFT_", "XDG_"))
    }
    temporary = str(new_home.parent / "temporary")
    return {**kept, "HOME": str(new_home), "TMPDIR": temporary, "OMP_NUM_THREADS": "1"}
