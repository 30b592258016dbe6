"""Keys of the team's server: files, hashes, reloading; and what a key may ask."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")

from lsp_server.team.http_server.errors import RequestRefused
from lsp_server.team.http_server.keys import (
    BadKeysFile,
    HashedKey,
    Keys,
    new_key,
    own_keys_file,
    write_keys,
)
from lsp_server.team.http_server.rate_limits import RequestLimits, UsageByKey


def test_a_key_is_known_by_its_hash_and_the_file_does_not_hold_it(tmp_path: Path) -> None:
    file, key = tmp_path / "keys", new_key()
    write_keys(file, [HashedKey.of(key, "ann")])
    assert key not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    holder = Keys(file).holder(key)
    assert holder == "ann"
    assert Keys(file).holder(new_key()) is None


def test_plain_lines_are_taken_and_comments_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# ours\n\nann sesame\nben open\n")
    keys = Keys(file)
    assert keys.holder("sesame") == "ann"
    assert keys.holder("open") == "ben"
    assert keys.holder("ann") is None
    assert keys.holder("") is None


@pytest.mark.parametrize("line", ["ann", "ann a b", "a/nn key", "ann hmac-sha256:x"])
def test_a_line_that_is_no_key_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "keys"
    file.write_text(f"ben open\n{line}\n")
    with pytest.raises(BadKeysFile, match="line 2 of "):
        Keys(file)


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    write_keys(file, [HashedKey.of("one", "ann")])
    keys = Keys(file)
    write_keys(file, [HashedKey.of("two", "ann")])
    assert keys.holder("one") is None
    assert keys.holder("two") == "ann"
    file.write_text("broken\n")
    assert keys.holder("two") == "ann"
    file.unlink()
    assert keys.holder("two") is None


def test_a_key_of_its_own_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "keys"
    key = own_keys_file(file)
    assert key is not None
    assert own_keys_file(file) is None
    assert file.stat().st_mode & 0o777 == 0o600
    assert Keys(file).holder(key) == "local"


def test_a_key_that_asks_too_much_waits_and_others_do_not() -> None:
    now = [0.0]
    usage = UsageByKey(RequestLimits(requests_per_minute=60, concurrent=2), lambda: now[0])
    for _ in range(6):
        with usage.request("ann"):
            pass
    with pytest.raises(RequestRefused) as refused, usage.request("ann"):
        pass
    assert (refused.value.status, refused.value.retry_after_s) == (429, 1)
    with usage.request("ben"), usage.request("ben"):
        with pytest.raises(RequestRefused) as refused, usage.request("ben"):
            pass
        assert refused.value.status == 429
    now[0] += 1.0
    with usage.request("ann"):
        pass
