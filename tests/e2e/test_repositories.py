"""An editor at a team's server: its workspace is kept there, and drafts come from it."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from .client import REPOSITORY, Driver, private_environment, profile, status, wait_until

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]
pytest.importorskip("starlette", reason="the extra server is not installed")

KEYS = {"ann": "key-of-ann", "bob": "key-of-bob"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("team")


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    """The address of a server with two keys."""
    keys = home / "keys"
    keys.write_text("".join(f"{name} {key}\n" for name, key in KEYS.items()))
    (home / "server").mkdir()
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "lsp_server", "serve-http", "--keys", str(keys)),
            *("--repositories", str(home / "repositories")),
        ],
        stdout=subprocess.PIPE,
        env=private_environment(home / "server"),
        cwd=REPOSITORY,
    )
    assert server.stdout is not None
    yield json.loads(server.stdout.readline())["url"]
    server.terminate()
    assert server.wait(60) == 0


@pytest.fixture(scope="module")
def environment(home: Path) -> Iterator[dict[str, str]]:
    (home / "editor").mkdir()
    made = private_environment(home / "editor")
    yield made
    subprocess.run(
        [sys.executable, "-m", "lsp_server", "stop"],
        env=made, cwd=REPOSITORY, capture_output=True, timeout=120, check=False,
    )  # fmt: skip


def functions(team: str, count: int) -> str:
    return "".join(
        f"def load_case_{number}(path, limit):\n"
        f"    return read_{team}_{number}_table(path, limit, strict_{team}=True)\n\n\n"
        for number in range(count)
    )


def ask(url: str, key: str, method: str, path: str, body: Any = None) -> httpx2.Response:
    return httpx2.request(
        method,
        f"{url}/redraft/v1{path}",
        json=body,
        headers={"Authorization": f"Bearer {KEYS[key]}"},
        timeout=120,
    )


def test_a_workspace_is_registered_when_the_user_says_so_and_drafts_come_from_it(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    (workspace / "cases.py").write_text(functions("shop", 40))
    driver = Driver(environment)
    driver.chosen = {"title": "Send It"}
    server = {"url": url, "key": KEYS["ann"], "fallback": "none"}
    driver.configuration = {"server": server}
    driver.initialize(profile("neovim"), workspace, settings={"server": server})
    wait_until(lambda: asked(driver) == 1, 120)
    wait_until(lambda: [one["state"] for one in shared(environment)] == ["ready"], 60)
    (kept,) = shared(environment)
    assert kept["files"] == 1

    def indexed() -> bool:
        shown = ask(url, "ann", "GET", f"/repositories/{kept['repository']}").json()
        return bool(shown["index"]["files"] == 1 and shown["index"]["state"] == "ready")

    wait_until(indexed, 240)
    document = (workspace / "new.py").as_uri()
    text = "import os\n\n\ndef load_case_7(path, limit):\n    return read_shop_7_"
    driver.open(document, text)
    place = {"line": 4, "character": len("    return read_shop_7_")}
    told = driver.request(
        "redraft/explain", {"textDocument": {"uri": document}, "position": place}, 120
    )
    sources = {name.lower(): count for name, count in told["sources"].items()}
    assert sources.get("repository", 0) > 0, told
    assert ask(url, "bob", "GET", f"/repositories/{kept['repository']}").status_code == 404
    # Whoever answered is not asked again.
    again = Driver(environment)
    again.configuration = driver.configuration
    again.initialize(profile("neovim"), workspace, settings={"server": server})
    again.wait_for_state("ready", timeout=60)
    answered = again.request(
        "workspace/executeCommand", {"command": "redraft.unregisterRepository", "arguments": []}
    )
    assert answered == {"folders": [str(workspace)]}
    assert asked(again) == 0
    assert ask(url, "ann", "GET", "/repositories").json() == {"repositories": []}
    assert again.close() == 0
    assert driver.close() == 0


def asked(driver: Driver) -> int:
    return sum(message["method"] == "window/showMessageRequest" for message in driver.asked)


def shared(environment: dict[str, str]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = status(environment).get("repositories", [])
    return kept


def test_completions_of_one_team_hold_nothing_of_another(url: str) -> None:
    teams = {"ann": "alder", "bob": "birch"}
    ids = {key: repository(url, key, functions(team, 60)) for key, team in teams.items()}
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    drafted = 0
    for _ in range(40):
        key, number = chance.choice(list(teams)), chance.randrange(60)
        prefix = f"def load_case_{number}(path, limit):\n    return read_{teams[key]}_"
        for workspace in (ids[key], f"{ids[key]}.session"):
            result = complete(url, key, workspace, prefix)
            other = next(team for team in teams.values() if team != teams[key])
            assert other not in json.dumps(result)
            drafted += result["sources"].get("repository", 0)
    assert drafted > 0
    foreign = ask(url, "bob", "POST", "/complete", completion(ids["ann"], "x = "))
    unknown = ask(url, "bob", "POST", "/complete", completion("0" * 32, "x = "))
    assert (foreign.status_code, foreign.json()) == (404, unknown.json())


def repository(url: str, key: str, text: str) -> str:
    made: str = ask(url, key, "POST", "/repositories", {"name": "cases"}).json()["id"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    ask(url, key, "PUT", f"/repositories/{made}/manifest", {"files": {"cases.py": digest}})
    ask(url, key, "POST", f"/repositories/{made}/blobs", {"contents": {digest: text}})

    def indexed() -> bool:
        shown = ask(url, key, "GET", f"/repositories/{made}").json()["index"]
        return bool(shown["files"] == 1 and shown["state"] == "ready")

    wait_until(indexed, 240)
    return made


def completion(workspace: str, prefix: str) -> dict[str, Any]:
    job = {"workspace": workspace, "path": "new.py", "prefix": prefix, "suffix": "\n"}
    return {"protocol": 1, "job": {**job, "language": "python", "max_tokens": 24}}


def complete(url: str, key: str, workspace: str, prefix: str) -> dict[str, Any]:
    answer = ask(url, key, "POST", "/complete", completion(workspace, prefix))
    assert answer.status_code == 200, answer.text
    name = ""
    for line in answer.text.splitlines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: ") and name == "result":
            result: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return result
    raise AssertionError(answer.text)
