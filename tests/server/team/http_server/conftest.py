"""Starts one server and one engine for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("msgspec", reason="the extra server is not installed")
pytest.importorskip("starlette", reason="the extra server is not installed")
pytest.importorskip("uvicorn", reason="the extra server is not installed")

from served import START_S, Served, chat_model, serving
from steady_costs import DTYPE, THREADS, keep_costs

from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.options import EngineOptions


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test waits for the engine, which a busy machine starts slowly."""
    for item in items:
        if (
            item.get_closest_marker("long") is None
            and Path(__file__).parent in Path(item.path).parents
        ):
            item.add_marker(pytest.mark.timeout(START_S))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = chat_model(tmp_path_factory.mktemp("model"))
    keep_costs(made)
    return made


@pytest.fixture(scope="session")
def running_server(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Served]]:
    """Gives the one server that tests share, and another one once a test has ended it."""
    options = ("--dtype", DTYPE, "--threads", str(THREADS), "--name", "host.docker.internal")
    running: list[Served] = []
    with ExitStack() as stack:

        def find() -> Served:
            if not running or running[-1].process.poll() is not None:
                folder = tmp_path_factory.mktemp("served")
                running.append(stack.enter_context(serving(folder, model, *options)))
            return running[-1]

        yield find


@pytest.fixture
def server(running_server: Callable[[], Served]) -> Served:
    return running_server()


@pytest.fixture(scope="session")
def local(model: Path) -> Iterator[EngineService]:
    """The same model in this process."""
    service = EngineService(EngineOptions(path=str(model), dtype=DTYPE, threads=THREADS))
    yield service
    service.close()
