"""The daemon's life: one for all, private, replaced when it dies, gone when nobody needs it.

No client here says ``initialized`` unless it must, so no model is loaded.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from own_folder import own_folder
from seeds import Amount

from .client import (
    Driver,
    command,
    daemon_status,
    greeted,
    private_environment,
    profile,
    status,
    wait_until,
)

STARTS = 6
"""Fronts that start at the same moment."""


@pytest.fixture
def home() -> Iterator[Path]:
    with own_folder("e2e") as folder:
        yield folder


@pytest.fixture
def environment(home: Path) -> Iterator[dict[str, str]]:
    made = private_environment(home)
    yield made
    command(made, "stop")


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def run_folder(environment: dict[str, str]) -> Path:
    return Path(environment["XDG_RUNTIME_DIR"]) / "redraft"


def test_fronts_that_start_at_once_share_one_daemon(environment: dict[str, str]) -> None:
    with ThreadPoolExecutor(STARTS) as pool:
        drivers = list(pool.map(lambda _: greeted(environment), range(STARTS)))
    shown = daemon_status(environment)
    assert shown["clients"] == 0, "none has said initialized"
    assert len(list(run_folder(environment).glob("*.sock"))) == 1
    daemons = subprocess.run(
        ["pgrep", "-f", f"lsp_server.editor.daemon.host {run_folder(environment)}"],
        capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    assert daemons == [str(shown["pid"])]
    with ThreadPoolExecutor(STARTS) as pool:
        assert list(pool.map(lambda driver: driver.close(), drivers)) == [0] * STARTS


@pytest.mark.parametrize("how", ["others may write", "a link"])
def test_an_unsafe_folder_is_refused(environment: dict[str, str], home: Path, how: str) -> None:
    folder = run_folder(environment)
    if how == "a link":
        (home / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(home / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    refused = command(environment, "serve")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert str(folder) in refused.stderr


def test_a_very_long_folder_works(home: Path) -> None:
    long = home / ("long" * 30)
    long.mkdir(mode=0o700)
    made = private_environment(home, XDG_RUNTIME_DIR=str(long))
    driver = greeted(made)
    driver.close()
    command(made, "stop")


def leave_a_stale_socket(environment: dict[str, str]) -> None:
    driver = greeted(environment)
    pid = daemon_status(environment)["pid"]
    driver.close()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(pid))
    assert len(list(run_folder(environment).glob("*.sock"))) == 1
    again = greeted(environment)
    assert daemon_status(environment)["pid"] != pid
    again.close()


def test_a_stale_socket_is_replaced(environment: dict[str, str], amount: Amount) -> None:
    for _ in range(amount(1, 20)):
        leave_a_stale_socket(environment)


@pytest.mark.parametrize("what", ["the socket", "the whole folder"])
def test_a_socket_that_vanished_is_there_again_for_the_next_editor(
    environment: dict[str, str], what: str
) -> None:
    """Something cleans temporary folders while an editor is open."""
    driver = greeted(environment)
    pid = daemon_status(environment)["pid"]
    for file in run_folder(environment).iterdir():
        if what == "the whole folder" or file.suffix == ".sock":
            file.unlink()
    if what == "the whole folder":
        run_folder(environment).rmdir()
    other = greeted(environment)
    assert what == "the whole folder" or daemon_status(environment)["pid"] == pid
    assert driver.request("redraft/status", {})["state"]
    other.close()
    driver.close()


def test_socket_and_logs_are_the_users_alone_and_strangers_words_are_passed_over(
    environment: dict[str, str], home: Path
) -> None:
    driver = greeted(environment)
    (path,) = run_folder(environment).glob("*.sock")
    log = next(iter(home.rglob("daemon.log")))
    if os.getuid() == 0:
        # Root may become somebody else, whom neither folder nor socket nor log lets in.
        reach = lambda: socket.socket(socket.AF_UNIX).connect(str(path))  # noqa: E731
        assert as_a_stranger(reach) == "PermissionError"
        assert as_a_stranger(log.read_text) == "PermissionError"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert all(stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 for file in home.rglob("*.log"))
    for data in (b"", b"\n", b"hello\n", b"[]\n", b'{"command": "nonsense"}\n', b"x" * 100_000):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(path))
            stranger.sendall(data)
    assert daemon_status(environment)["running"]
    driver.close()


def as_a_stranger(act: Callable[[], Any]) -> str:
    """What becomes of an act by another user: the name of the error, or nothing."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            act()
        except OSError as error:
            os.write(write, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as told:
        return told.read()


def test_a_log_that_cannot_be_written_costs_nothing(home: Path) -> None:
    blocked = home / "file"
    blocked.write_text("")
    made = private_environment(home, REDRAFT_LOG_DIR=str(blocked / "logs"))
    driver = greeted(made)
    assert driver.close() == 0
    command(made, "stop")


OFF = {"initializationOptions": {"settings": {"enabled": False}}}
"""No model is loaded."""


def switched_off(environment: dict[str, str], folder: Path) -> Driver:
    driver = Driver(environment)
    driver.initialize({**profile("neovim"), **OFF}, folder)
    return driver


STATUS = "redraft/status"


def lose_the_daemon(environment: dict[str, str], driver: Driver, uri: str, rounds: int) -> None:
    """Kill the daemon while somebody types: nothing typed is lost, everything is answered."""
    driver.open(uri, "")
    document = {"textDocument": {"uri": uri}}
    pids = set()
    for number in range(rounds):
        driver.insert(uri, 2 + 2 * number, 0, 0, "before\n")
        pid = daemon_status(environment)["pid"]
        assert pid not in pids
        pids.add(pid)
        os.kill(pid, signal.SIGKILL)
        driver.insert(uri, 3 + 2 * number, 0, 0, "after\n")
        asked = [driver.start(STATUS, document) for _ in range(3)]
        for one in asked:
            answer = driver.answer(one, 60)
            assert "result" in answer or answer["error"]["code"] == -32801
        wait_until(lambda: daemon_status(environment).get("pid") not in (None, *pids), 90)
        # The front may still be on its way to the new daemon.
        wait_until(lambda: "result" in driver.answer(driver.start(STATUS, document), 90), 90)
        told = driver.request(STATUS, document, 90)
        assert "not open" not in told["reason"]
        assert driver.process.poll() is None


def test_a_killed_daemon_is_replaced_and_the_editor_goes_on(
    environment: dict[str, str], tmp_path: Path
) -> None:
    driver = switched_off(environment, tmp_path)
    lose_the_daemon(environment, driver, "file:///typed.py", 2)
    logged = [message["params"]["message"] for message in driver.notifications
              if message["method"] == "window/logMessage"]  # fmt: skip
    assert sum("the daemon ended" in message for message in logged) == 2
    assert driver.close() == 0


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_daemons_that_die_again_and_again_cost_no_front(
    environment: dict[str, str], tmp_path: Path
) -> None:
    driver = switched_off(environment, tmp_path)
    lose_the_daemon(environment, driver, "file:///typed.py", 12)
    shown = [one for one in driver.notifications if one["method"] == "window/showMessage"]
    assert shown, "the user is told of a daemon that does not stay"
    assert driver.close() == 0


def test_an_editor_that_goes_away_takes_its_front_with_it(
    environment: dict[str, str], amount: Amount
) -> None:
    """Editors that close their pipe or are killed: their fronts end, nothing stays behind."""
    times = amount(2, 100)
    stays = greeted(environment)
    for number in range(times):
        leaves = greeted(environment)
        if number % 2:
            leaves.kill()
            continue
        assert leaves.process.stdin is not None
        leaves.process.stdin.close()
        leaves.process.wait(60)
    wait_until(lambda: daemon_status(environment)["connections"] == 2, 120)  # its own and the first
    assert "error" in stays.answer(stays.start("nonsense", {}), 5)
    assert stays.close() == 0


def test_an_idle_daemon_leaves_and_a_new_front_finds_another(home: Path) -> None:
    made = private_environment(home, REDRAFT_IDLE_EXIT_S="0.5")
    for _ in range(2):
        driver = greeted(made)
        pid = daemon_status(made)["pid"]
        driver.close()
        wait_until(lambda pid=pid: gone(pid))  # type: ignore[misc]
        assert list(run_folder(made).glob("*.sock")) == []


def test_connecting_at_the_moment_of_idle_exit_never_fails(home: Path, amount: Amount) -> None:
    times = amount(4, 200)
    made = private_environment(home, REDRAFT_IDLE_EXIT_S="0.05")
    for _ in range(times):
        assert greeted(made).close() == 0
    command(made, "stop")


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_many_rounds_of_fronts_that_start_at_once(home: Path) -> None:
    for number in range(20):
        folder = home / str(number)
        folder.mkdir()
        made = private_environment(folder)
        with ThreadPoolExecutor(50) as pool:
            drivers = list(pool.map(lambda _, made=made: greeted(made), range(50)))  # type: ignore[misc]
            assert list(pool.map(lambda driver: driver.close(), drivers)) == [0] * 50
        assert len(list(run_folder(made).glob("*.sock"))) == 1
        command(made, "stop")


def test_other_code_gets_another_daemon_and_the_old_one_leaves(
    environment: dict[str, str], home: Path
) -> None:
    old = greeted(environment)
    pid = status(environment)["pid"]
    # Another log folder stands for another build: both are in the name of the socket.
    other = {**environment, "REDRAFT_LOG_DIR": str(home / "logs")}
    new = greeted(other)
    assert status(other)["pid"] != pid
    assert len(list(run_folder(environment).glob("*.sock"))) == 2
    new.close()
    old.close()
    command(other, "stop")


def test_loopback_with_a_token_where_there_are_no_unix_sockets(home: Path) -> None:
    made = private_environment(home, REDRAFT_LOOPBACK="1")
    driver = greeted(made)
    (address,) = run_folder(made).glob("*.sock")
    assert stat.S_IMODE(address.stat().st_mode) == 0o600
    known = json.loads(address.read_text())
    with socket.create_connection(("127.0.0.1", known["port"])) as stranger:
        stranger.sendall(b'{"command": "status", "token": "guess"}\n')
        assert stranger.recv(100) == b""
    assert status(made)["running"]
    assert driver.close() == 0
    assert command(made, "stop").stdout == "stopped\n"


def test_status_and_stop(environment: dict[str, str]) -> None:
    nobody = command(environment, "status", "--json")
    assert (nobody.returncode, json.loads(nobody.stdout)) == (1, {"running": False})
    assert command(environment, "stop").stdout == "no daemon runs\n"
    driver = greeted(environment)
    shown = command(environment, "status")
    assert shown.returncode == 0
    assert "process" in shown.stdout
    told = status(environment)
    assert told["engines"] == [], "a greeting needs no model"
    pid = told["pid"]
    assert command(environment, "stop").stdout == "stopped\n"
    wait_until(lambda: gone(pid))
    driver.process.wait(60)
