"""Secrets that are open or lie in the workspace stand nowhere in the home afterwards."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from planted_secrets import SECRET_PATHS, schemes_of, token, word
from seeds import Amount

from .client import Driver, daemon_status, inline, wait_until_ready

Connect = Callable[..., Driver]
SHOWN = "from pears import pears_for_all\n\n\ndef total(pears):\n    return "


def plant(driver: Driver, workspace: Path, generator: random.Random, number: int) -> list[str]:
    """A file with a secret and a document of it, asked for a suggestion. Gives the secret."""
    if number % 2:
        path = generator.choice(SECRET_PATHS).format(work=workspace.as_posix())
        uri = generator.choice(list(schemes_of(path)))
        value = f"plum{word(generator, 20)}"
    else:
        path = f"{workspace.as_posix()}/planted{number}.py"
        uri = f"file://{path}"
        value = token(generator)[1]
        Path(path).write_text(f"seed = '''{value}'''\n")
    driver.open(uri, f"from pears import pears_for_all\nseed = '''{value}'''\n")
    answer = driver.request("textDocument/inlineCompletion", inline(uri, 0, 0))
    assert answer == {"items": []}
    told = driver.request("redraft/status", {"textDocument": {"uri": uri}})
    assert uri in [one["uri"] for one in told["heldBack"]]
    return [line for line in value.splitlines() if not line.startswith("-----")]


def planted(connect: Connect, workspace: Path, environment: dict[str, str], count: int) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    settings = {"log": {"level": "debug", "sourceText": True}}
    driver = connect(initializationOptions={"settings": settings})
    (workspace / "pears.py").write_text("def pears_for_all():\n    return 1\n")
    shown = (workspace / "shown.py").as_uri()
    driver.open(shown, SHOWN)
    values: list[str] = []
    for number in range(count):
        values += plant(driver, workspace, generator, number)
        driver.request("textDocument/inlineCompletion", inline(shown, 4, 11))
    assert len(daemon_status(environment)["held_back"]) >= min(count, 10)
    driver.request("workspace/executeCommand", {"command": "redraft.reindex"})
    wait_until_ready(driver)
    assert driver.close() == 0
    home = Path(environment["HOME"])
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"wrote " in kept, "the log holds what was written"
    assert [value for value in values if value.encode() in kept] == []
    told = json.dumps(driver.notifications)
    assert [value for value in values if value in told] == []


def test_planted_secrets_stand_nowhere_in_the_home(
    connect: Connect, workspace: Path, environment: dict[str, str], amount: Amount
) -> None:
    planted(connect, workspace, environment, amount(12, 200))
