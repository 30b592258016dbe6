"""Documents with secrets are held back, whatever is around their path and however they change."""

from __future__ import annotations

import asyncio
import random
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from planted_secrets import SECRET_PATHS, innocent_paths, schemes_of, token

from lsp_server.text.documents import ignored_paths
from lsp_server.text.documents.allowed_files import AllowedFiles
from lsp_server.text.documents.document import Document
from lsp_server.text.documents.ignored_paths import IgnoredPaths
from lsp_server.text.documents.secret_documents import NOT_KNOWN, SecretDocuments, path_reason
from lsp_server.text.documents.uri_paths import paths_in
from lsp_server.text.documents.workspace_folders import DocumentLocation
from repo_index.secrets import secret_content


def test_every_scheme_gives_the_path_inside() -> None:
    missed = [
        uri
        for path in SECRET_PATHS
        for uri in schemes_of(path.format(work="/srv/shop"))
        if not path_reason(uri)
    ]
    assert missed == []


def test_innocent_paths_stay_so_in_every_scheme() -> None:
    paths = innocent_paths()
    held = [path for path in paths if any(map(path_reason, schemes_of(path)))]
    assert len(held) <= len(paths) / 100, held


@pytest.mark.parametrize(
    "uri", ["", "a", ":", "git:", "x:?{", "x:#%", "file://", "%%%", "a:" * 9000]
)
def test_no_uri_is_too_odd(uri: str) -> None:
    assert isinstance(paths_in(uri), list)


def test_a_link_to_a_secret_file_is_held_back(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("x\n")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".ssh" / "config")
    assert path_reason((tmp_path / "notes.txt").as_uri())
    assert not path_reason((tmp_path / "other.txt").as_uri())


def test_a_text_is_judged_after_any_changes_as_if_it_were_new() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    seen = {True: 0, False: 0}
    for _ in range(60):
        secrets = SecretDocuments(AllowedFiles())
        lines = [f"value_{i} = compute({i})\n" for i in range(generator.randint(1, 60))]
        document = Document("file:///w/a.py", "python", 1, "".join(lines))
        secrets.withheld_reason(document)
        for _ in range(12):
            secrets.changed(document, _any_edit(generator, document))
            reason = secrets.withheld_reason(document)
            assert bool(reason) is bool(secret_content(document.text))
            seen[bool(reason)] += 1
    assert min(seen.values()) > 20


KEY = f'api_key = "{token(random.Random(5))[1]}"\n'


def looking(text: str, meanwhile: Callable[[SecretDocuments, Document], None]) -> list[str]:
    """What is known of a long text at once, and told of it in the end."""
    told: list[str] = []

    async def work() -> None:
        secrets = SecretDocuments(AllowedFiles())
        secrets.on_known = lambda document: told.append(secrets.withheld_reason(document))
        document = Document("file:///w/a.py", "python", 1, text)
        told.append(secrets.withheld_reason(document))
        await asyncio.sleep(0)
        meanwhile(secrets, document)
        for _ in range(200):
            await asyncio.sleep(0)
        secrets.close()

    asyncio.run(work())
    return told


def typed(text: str, line: int) -> Callable[[SecretDocuments, Document], None]:
    def meanwhile(secrets: SecretDocuments, document: Document) -> None:
        secrets.changed(document, document.change((line, 0), (line + 1, 0), text, "utf-16"))

    return meanwhile


def replaced(text: str) -> Callable[[SecretDocuments, Document], None]:
    def meanwhile(secrets: SecretDocuments, document: Document) -> None:
        secrets.changed(document, document.replace_all(text))

    return meanwhile


LINES = "value = compute(value)\n" * 20_000


@pytest.mark.parametrize(
    ("text", "meanwhile", "told"),
    [
        ("a = 1\n", typed("", 0), [""]),
        (KEY, typed("", 9), ["secret: "]),
        (LINES, typed("", 9), [NOT_KNOWN, ""]),
        (LINES, typed("x = 1\n", 19_000), [NOT_KNOWN, ""]),
        (LINES, typed(KEY, 3), [NOT_KNOWN, "secret: "]),
        (LINES, typed(KEY, 19_990), [NOT_KNOWN, "secret: "]),
        (LINES, replaced(LINES + KEY), [NOT_KNOWN, "secret: "]),
        (LINES, replaced(""), [NOT_KNOWN, ""]),
        (LINES + KEY, typed("", 9), [NOT_KNOWN, "secret: "]),
        (LINES + KEY, typed("", 20_000), [NOT_KNOWN, ""]),
        (KEY + LINES, typed("", 0), [NOT_KNOWN, ""]),
        (KEY + LINES, replaced(""), [NOT_KNOWN, ""]),
        (KEY + LINES, typed(KEY, 0), [NOT_KNOWN, "secret: "]),
        (LINES, lambda secrets, document: secrets.closed(document.uri), [NOT_KNOWN]),
        (LINES, lambda secrets, _: secrets.close(), [NOT_KNOWN]),
    ],
)
def test_a_long_text_is_held_back_until_it_is_known(
    text: str, meanwhile: Callable[[SecretDocuments, Document], None], told: list[str]
) -> None:
    found = looking(text, meanwhile)
    assert [one[: len("secret: ")] if one != NOT_KNOWN else one for one in found] == told


def _any_edit(generator: random.Random, document: Document):  # type: ignore[no-untyped-def]
    """A secret comes in, in one piece or in two, or some text comes or goes."""
    start = generator.randrange(len(document.lines))
    end = min(len(document.lines) - 1, start + generator.choice([0, 0, 1, 5]))
    text = generator.choice(
        ["", "\n", "x = 1\n", "# a\r\n\r\n", 'password = "', f"{token(generator)[1]}\n"]
    )
    if generator.random() < 0.2:
        return document.replace_all(text * generator.choice([0, 1]))
    at = generator.randint(0, 8)
    return document.change((start, at), (end, max(at, generator.randint(0, 40))), text, "utf-16")


def test_a_secret_that_is_typed_is_found_with_its_last_characters() -> None:
    generator = random.Random(5)
    for _ in range(40):
        kind, value = token(generator)
        document = Document("file:///w/a.py", "python", 1, "a = 1\n\nb = 2\n")
        secrets = SecretDocuments(AllowedFiles())
        assert not secrets.withheld_reason(document)
        line = column = 0
        line = 1
        for character in value:
            edit = document.change((line, column), (line, column), character, "utf-16")
            secrets.changed(document, edit)
            line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
        assert secrets.withheld_reason(document), kind


def test_the_user_allows_a_file_and_takes_it_back(tmp_path: Path) -> None:
    kept = tmp_path / "state" / "allowed-files.json"
    document = Document("file:///w/.env", "dotenv", 1, "A=1\n")
    allowed = AllowedFiles(kept)
    secrets = SecretDocuments(allowed)
    assert secrets.withheld_reason(document)
    allowed.allow("file:///w/.env")
    assert not secrets.withheld_reason(document)
    assert secrets.secret_reason(document)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "file:///w/x/../%2Eenv" in AllowedFiles(kept)
    assert "file:///w/.env.local" not in AllowedFiles(kept)
    assert "git:/w/.env" not in AllowedFiles(kept)
    allowed.hold_back("file:///w/.env")
    assert secrets.withheld_reason(document)
    assert "file:///w/.env" not in AllowedFiles(kept)


@pytest.mark.parametrize("damage", ["", "{", "[1, null]", '{"a": 1}', "7", "\0"])
def test_a_damaged_list_allows_nothing(tmp_path: Path, damage: str) -> None:
    (tmp_path / "a.json").write_text(damage)
    assert "file:///w/.env" not in AllowedFiles(tmp_path / "a.json")


def test_ignore_files_are_read_again_when_told(tmp_path: Path) -> None:
    ignored = IgnoredPaths()
    place = DocumentLocation(str(tmp_path), "build/a.py", str(tmp_path / "build/a.py"))
    assert ignored.reason(place, []) == ""
    assert "build" in ignored.reason(place, ["build/"])
    (tmp_path / ".gitignore").write_text("build/\n")
    assert ignored.reason(place, []) == ""
    ignored.forget()
    assert ".gitignore" in ignored.reason(place, [])
    assert ignored.reason(DocumentLocation("", "a.py", "/a.py"), ["*"]) == ""


def test_ignore_files_are_looked_at_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(ignored_paths, "time", SimpleNamespace(monotonic=lambda: now))
    ignored = IgnoredPaths()
    location = DocumentLocation(str(tmp_path), "build/a.py", str(tmp_path / "build/a.py"))
    for rules in ("build/\n", "", "a.py\nbuild/\n", "\n"):
        before = ignored.reason(location, [])
        (tmp_path / ".gitignore").write_text(rules)
        assert ignored.reason(location, []) == before
        now += ignored_paths.RECHECK_S + 0.1
        assert bool(ignored.reason(location, [])) is bool(rules.strip())
