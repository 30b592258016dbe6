"""What the model computed of a document is on disk, and no more once the document is held back."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path

from planted_secrets import token

from .client import Driver, inline, wait_until
from .conftest import SHAPES

Connect = Callable[..., Driver]


def test_a_documents_cache_is_kept_until_a_secret_stands_in_it(
    connect: Connect, workspace: Path, environment: dict[str, str]
) -> None:
    home = Path(environment["HOME"])
    # Those of other documents may be written meanwhile.
    named = hashlib.sha256(f"{workspace}\0kept.py".encode()).hexdigest()[:32]
    driver = connect()
    uri = (workspace / "kept.py").as_uri()
    text = SHAPES * 4
    driver.open(uri, text)
    lines = text.count("\n")
    driver.request("textDocument/inlineCompletion", inline(uri, lines, 0))
    wait_until(lambda: bool(list(home.rglob(f"{named}-*.kv"))))
    (file,) = home.rglob(f"{named}-*.kv")
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
    seed = random.randrange(1 << 32)
    print("seed", seed)
    value = token(random.Random(seed))[1]
    driver.insert(uri, 2, lines, 0, f"seed = '''{value}'''\n")
    wait_until(lambda: not file.exists())
    assert driver.close() == 0
