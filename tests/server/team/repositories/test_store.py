"""Repositories on the server's disk: who may do what, quotas, paths, secrets, deletion."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

import pytest
from planted_secrets import token

from lsp_server.team.repositories.errors import (
    InvalidUpload,
    NoSuchRepository,
    QuotaExceeded,
    RefusedContent,
    RepositoryError,
    TooLarge,
)
from lsp_server.team.repositories.limits import DAY_S, RepositoryLimits
from lsp_server.team.repositories.paths import colliding, path_problem
from lsp_server.team.repositories.store import RepositoryStore


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> RepositoryStore:
    limits = RepositoryLimits(repositories=3, bytes=10_000, file_bytes=4_000, files=90)
    return RepositoryStore(tmp_path / "state", limits, clock)


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def upload(store: RepositoryStore, key: str, repository: str, texts: dict[str, str]) -> None:
    """Have a repository consist of these texts, as an editor does it."""
    state = store.set_files(key, repository, {path: hash_of(text) for path, text in texts.items()})
    by_hash = {hash_of(text): text for text in texts.values()}
    for digest in state.missing:
        store.add_content(key, repository, digest, by_hash[digest].encode())


def on_disk(store: RepositoryStore, repository: str) -> dict[str, str]:
    root = store.files_folder(repository)
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*")
        if path.is_file()
    }


def everything(folder: Path) -> bytes:
    """All bytes of all files below a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_the_files_are_those_of_the_list(store: RepositoryStore) -> None:
    ours = store.register("ann", "shop").id
    upload(store, "ann", ours, {"a.py": "one", "src/b.py": "two", "src/c.py": "one"})
    assert on_disk(store, ours) == {"a.py": "one", "src/b.py": "two", "src/c.py": "one"}
    upload(store, "ann", ours, {"src/b.py": "two", "src": "no folder any more"})
    assert on_disk(store, ours) == {"src/b.py": "two"}
    upload(store, "ann", ours, {"src": "a file where a folder was"})
    assert on_disk(store, ours) == {"src": "a file where a folder was"}


def test_any_lists_one_after_another_leave_what_the_last_one_says(store: RepositoryStore) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    ours = store.register("ann", "shop").id
    names = ["a", "b", "c", "a/x", "a/y", "b/x/y", "c/x"]
    for _ in range(12):
        chosen = [name for name in names if chance.random() < 0.5]
        chance.shuffle(chosen)
        texts = {name: f"text {chance.randrange(4)}" for name in chosen}
        left_out = colliding(list(texts))
        upload(store, "ann", ours, texts)
        assert on_disk(store, ours) == {
            path: text for path, text in texts.items() if path not in left_out
        }


def test_a_saved_file_is_all_that_is_sent_again(store: RepositoryStore) -> None:
    ours = store.register("ann", "shop").id
    upload(store, "ann", ours, {"a.py": "one", "b.py": "two", "c.py": "three"})
    state = store.change_files("ann", ours, {"a.py": hash_of("new"), "b.py": None})
    assert state.missing == [hash_of("new")]
    assert on_disk(store, ours) == {"a.py": "one", "c.py": "three"}
    store.add_content("ann", ours, hash_of("new"), b"new")
    assert on_disk(store, ours) == {"a.py": "new", "c.py": "three"}
    moved = store.change_files("ann", ours, {"a.py": None, "d.py": hash_of("new")})
    assert moved.missing == []
    assert on_disk(store, ours) == {"d.py": "new", "c.py": "three"}


def test_a_content_must_have_the_hash_that_it_is_sent_under(store: RepositoryStore) -> None:
    ours = store.register("ann", "shop").id
    store.set_files("ann", ours, {"a.py": hash_of("one")})
    for digest, data in [(hash_of("one"), b"two"), ("x", b"one"), ("../a", b"one")]:
        with pytest.raises(InvalidUpload):
            store.add_content("ann", ours, digest, data)
    assert on_disk(store, ours) == {}


def test_nothing_is_kept_that_no_list_names(store: RepositoryStore, tmp_path: Path) -> None:
    ours = store.register("ann", "shop").id
    store.add_content("ann", ours, hash_of("uninvited"), b"uninvited")
    assert b"uninvited" not in everything(tmp_path)


def test_a_foreign_key_is_told_what_nobody_is_told_otherwise(store: RepositoryStore) -> None:
    ours = store.register("ann", "shop").id
    upload(store, "ann", ours, {"a.py": "one"})

    def tries(repository: str) -> list[str]:
        said = []
        for call in (
            lambda: store.read("eve", repository),
            lambda: store.delete("eve", repository),
            lambda: store.set_files("eve", repository, {"a.py": hash_of("one")}),
            lambda: store.change_files("eve", repository, {"a.py": None}),
            lambda: store.add_content("eve", repository, hash_of("one"), b"one"),
        ):
            with pytest.raises(NoSuchRepository) as raised:
                call()
            said.append(str(raised.value))
        return said

    assert tries(ours) == tries("0" * 32) == tries("../" + ours) == tries("")
    assert store.owned("eve") == []
    assert on_disk(store, ours) == {"a.py": "one"}


def test_whether_others_have_a_content_is_never_told(store: RepositoryStore) -> None:
    ours, theirs = store.register("ann", "shop").id, store.register("eve", "shop").id
    upload(store, "ann", ours, {"a.py": "one"})
    second = store.register("ann", "another").id
    for key, repository in [("eve", theirs), ("ann", second)]:
        state = store.set_files(key, repository, {"guess.py": hash_of("one")})
        assert state.missing == [hash_of("one")]


def test_a_key_keeps_no_more_than_its_quota(store: RepositoryStore) -> None:
    first, second = store.register("ann", "a").id, store.register("ann", "b").id
    upload(store, "ann", first, {"a.py": "a" * 4_000})
    upload(store, "ann", second, {"b.py": "b" * 4_000})
    with pytest.raises(QuotaExceeded):
        upload(store, "ann", second, {"b.py": "b" * 4_000, "c.py": "c" * 3_000})
    upload(store, "bob", store.register("bob", "a").id, {"c.py": "c" * 3_000})
    upload(store, "ann", second, {"c.py": "c" * 3_000})
    store.register("ann", "c")
    with pytest.raises(QuotaExceeded):
        store.register("ann", "d")
    with pytest.raises(TooLarge):
        upload(store, "ann", second, {"d.py": "d" * 4_001})
    with pytest.raises(TooLarge):
        store.set_files("ann", second, {f"{i}.py": hash_of("one") for i in range(91)})


BAD_PATHS = [
    *("", "/etc/passwd", "../a", "a/../../b", "a/./b", "a//b", "./a", "a/", "..", "."),
    *("a\\..\\b", "C:/a", "C:a", "a:b", "//host/share", "~/a:b", "a\0b", "a\nb", "a\x7fb"),
    *("con", "NUL.txt", "src/aux.c", "com1", "LPT9.log", "a. ", "a.", "a /b", "CON .py"),
    *("a?b", "a*b", "a<b", 'a"b', "a|b", "e\u0301.py", "a\ud800", "x" * 201, "a/" * 600 + "b"),
]


def test_paths_that_lead_elsewhere_are_refused(store: RepositoryStore) -> None:
    ours = store.register("ann", "shop").id
    assert [path for path in BAD_PATHS if not path_problem(path)] == []
    files = {**dict.fromkeys(BAD_PATHS, hash_of("one")), "a.py": hash_of("two")}
    state = store.set_files("ann", ours, files)
    assert list(state.refused) == BAD_PATHS
    assert state.missing == [hash_of("two")]


def test_a_path_that_leads_elsewhere_deletes_nothing_there(
    store: RepositoryStore, tmp_path: Path
) -> None:
    ours, other = store.register("ann", "shop").id, store.register("bob", "shop").id
    upload(store, "ann", ours, {"a.py": "one", "src/b.py": "two"})
    upload(store, "bob", other, {"a.py": "one"})
    (tmp_path / "victim").write_text("here")
    for path in (
        *(f"../{other}/a.py", f"../../blobs/{other}/{hash_of('one')}", "../../../victim"),
        *("../../repositories.sqlite", str(tmp_path / "victim"), "src", "src/..", "a\0b", ""),
    ):
        store.change_files("ann", ours, {path: None})
        store.change_files("ann", ours, {path: hash_of("one")})
        store.change_files("ann", ours, {path: None})
    assert (tmp_path / "victim").read_text() == "here"
    assert on_disk(store, other) == {"a.py": "one"}
    assert on_disk(store, ours) == {"a.py": "one", "src/b.py": "two"}
    assert store.read("bob", other).files == 1


def test_common_paths_count() -> None:
    for path in ("a.py", "src/é.py", ".github/workflows/ci.yml", "a b/c.d", "console.py", "x/~a"):
        assert path_problem(path) == ""


def test_of_two_paths_that_some_system_cannot_tell_apart_the_first_counts() -> None:
    assert colliding(["a", "A", "b/c", "B", "d", "D/e"]) == {"A", "B", "D/e"}


def test_secrets_are_refused_by_name_and_by_content(store: RepositoryStore, tmp_path: Path) -> None:
    ours = store.register("ann", "shop").id
    planted = f"key = '{token(random.Random(7))[1]}'\n"
    texts = {"src/.env": "harmless", "id_rsa": "harmless", "a.py": planted}
    state = store.set_files("ann", ours, {path: hash_of(text) for path, text in texts.items()})
    assert set(state.refused) == {"src/.env", "id_rsa"}
    with pytest.raises(RefusedContent):
        store.add_content("ann", ours, hash_of(planted), planted.encode())
    assert planted.encode() not in everything(tmp_path)


def test_what_is_no_text_is_refused(store: RepositoryStore) -> None:
    ours = store.register("ann", "shop").id
    data = b"\x89PNG\0\xff"
    store.set_files("ann", ours, {"a.py": hashlib.sha256(data).hexdigest()})
    with pytest.raises(RefusedContent):
        store.add_content("ann", ours, hashlib.sha256(data).hexdigest(), data)


def test_a_deleted_repository_is_gone_from_the_disk(store: RepositoryStore, tmp_path: Path) -> None:
    ours = store.register("ann", "shop").id
    upload(store, "ann", ours, {"hidden_folder/secret_plan.py": "the marker text"})
    store.delete("ann", ours)
    left = everything(tmp_path)
    assert b"the marker text" not in left
    assert b"secret_plan" not in left
    assert hash_of("the marker text").encode() not in left
    with pytest.raises(NoSuchRepository):
        store.read("ann", ours)
    with pytest.raises(NoSuchRepository):
        upload(store, "ann", ours, {"a.py": "one"})


def test_a_repository_ends_after_thirty_days_without_use(
    store: RepositoryStore, clock: Clock
) -> None:
    unused, used = store.register("ann", "a").id, store.register("ann", "b").id
    clock.now += 29 * DAY_S
    store.read("ann", used)
    assert store.delete_unused() == []
    clock.now += 1.1 * DAY_S
    assert store.delete_unused() == [unused]
    assert [record.id for record in store.owned("ann")] == [used]
    assert not store.files_folder(unused).exists()


def test_what_a_crash_left_behind_is_removed(store: RepositoryStore) -> None:
    leftover = store.files_folder("0" * 32)
    leftover.mkdir(parents=True)
    (leftover / "a.py").write_text("one")
    store.delete_unused()
    assert not leftover.exists()


def test_the_audit_log_names_keys_and_ids_alone(
    store: RepositoryStore, tmp_path: Path, clock: Clock
) -> None:
    ours = store.register("ann", "shop").id
    upload(store, "ann", ours, {"deep/place.py": "the marker text"})
    store.delete("ann", ours)
    expired = store.register("ann", "old").id
    clock.now += 31 * DAY_S
    store.delete_unused()
    text = (tmp_path / "state" / "audit.jsonl").read_text()
    events = [json.loads(line) for line in text.splitlines()]
    assert [(event["event"], event["key"], event["repository"]) for event in events] == [
        *[("register", "ann", ours), ("delete", "ann", ours)],
        *[("register", "ann", expired), ("expire", "", expired)],
    ]
    assert set().union(*events) == {"time", "event", "key", "repository", "name"}
    assert not re.search("marker|place|deep|" + hash_of("the marker text"), text)


def test_only_the_server_reads_its_folder(store: RepositoryStore, tmp_path: Path) -> None:
    ours = store.register("ann", "shop").id
    upload(store, "ann", ours, {"src/a.py": "one"})
    open_to_others = [
        path for path in (tmp_path / "state").rglob("*") if path.stat().st_mode & 0o077
    ]
    assert open_to_others == []


def test_ids_say_nothing(store: RepositoryStore) -> None:
    ids = {store.register(key, "shop").id for key in ("ann", "bob", "eve")}
    assert len(ids) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in ids)


def test_a_name_is_no_path(store: RepositoryStore) -> None:
    for name in ("", " ", "a/b", "..", "a\nb", "x" * 101, "a\\b"):
        with pytest.raises(InvalidUpload):
            store.register("ann", name)


def test_every_error_has_a_status_and_a_code() -> None:
    kinds = RepositoryError.__subclasses__()
    assert kinds
    assert len({(kind.status, kind.code) for kind in kinds}) == len(kinds)
