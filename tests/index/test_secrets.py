"""Credentials enter no index: by name all of them, by content nearly all, code hardly ever."""

from __future__ import annotations

import base64
import random
import sysconfig
from pathlib import Path

import pytest
from planted_secrets import LETTERS, SECRET_PATHS, token, word
from seeds import Amount
from text_cases import data_cases

from repo_index import secrets
from repo_index.datastore import Datastore
from repo_index.indexer import Indexer
from repo_index.secret_paths import secret_path
from repo_index.secrets import secret_content
from repo_index.source_tree import FolderTree
from repo_index.tokens import TextTokenizer
from tests.token_files import token_count


def planted(generator: random.Random) -> tuple[str, str]:
    """A credential as it is found in code, and the text around it."""
    kind, value = token(generator)
    if generator.random() < 0.2:
        kind, value = generator.choice(
            [
                ("password", word(generator, 18, LETTERS + "!#%&*+-.:;?@^~")),
                ("hex", word(generator, 40, "0123456789abcdef")),
                ("base64", base64.b64encode(generator.randbytes(30)).decode()),
            ]
        )
    name = generator.choice(
        ["password", "API_KEY", "client_secret", "auth_token", "SECRET_KEY", "dbPassword"]
    )
    if kind in ("key", "end"):
        return kind, f'KEY = """{value}"""\n'
    form = generator.choice(
        ['{n} = "{v}"', "{n}: '{v}'", '"{n}": "{v}",', "{n} = '{v}'  # remove", 'x(a, {n}="{v}")']
    )
    return kind, form.format(n=name, v=value)


def code(generator: random.Random, files: list[str]) -> str:
    lines = generator.choice(files).splitlines()
    begin = generator.randint(0, max(0, len(lines) - 60))
    return "\n".join(lines[begin : begin + 60])


@pytest.fixture(scope="module")
def library() -> list[str]:
    """Source files of the standard library, for text around secrets and as what is harmless."""
    folder = Path(sysconfig.get_path("stdlib"))
    return [path.read_text("utf-8") for path in sorted(folder.glob("*.py"))]


def test_planted_secrets_are_found_by_content(library: list[str]) -> None:
    generator = random.Random(37)
    missed = []
    for _ in range(500):
        kind, line = planted(generator)
        text = code(generator, library) + "\n" + line + "\n" + code(generator, library)
        if not secret_content(text):
            missed.append((kind, line))
    assert len(missed) <= 25, missed


def test_a_text_that_is_looked_at_in_parts_has_what_the_whole_has(
    library: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    found = 0
    for _ in range(150):
        text = "\n".join(
            [code(generator, library), planted(generator)[1], code(generator, library)]
        )
        whole = secret_content(text)
        monkeypatch.setattr(secrets, "_PART", generator.choice([1, 7, 40, 300, len(text) - 1]))
        parts = list(secrets.secret_content_by_parts(text))
        assert not any(parts[:-1])
        assert bool(parts[-1]) is bool(whole), text
        found += bool(parts[-1])
    assert found > 100


def test_ordinary_code_is_hardly_ever_taken_for_a_secret(library: list[str]) -> None:
    assert len(library) > 150
    taken = [reason for text in library if (reason := secret_content(text))]
    assert len(taken) <= len(library) / 100, taken


@data_cases("text")
def test_harmless_text(text: str) -> None:
    assert secret_content(text) == ""


def test_the_reason_names_the_line_and_not_the_secret() -> None:
    value = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z0K"
    reason = secret_content(f"a\nb\nkey = '{value}'\n")
    assert reason == "secret: an access token on line 3"


@data_cases()
def test_names(path: str, secret: bool) -> None:
    assert bool(secret_path(path)) is secret


def test_no_secret_reaches_the_store(
    tmp_path: Path, tokenizer: TextTokenizer, library: list[str]
) -> None:
    generator = random.Random(38)
    work = tmp_path / "work"
    work.mkdir()
    values = []
    names = [".env", "server.pem", "id_ed25519", "secrets.yml", ".npmrc", "prod.tfvars", ".pgpass"]
    for i in range(60):
        value = f"ghp_{word(generator, 36)}"
        values.append(value)
        if i % 3 == 0:
            folder = work / f"d{i}"
            folder.mkdir()
            (folder / generator.choice(names)).write_text(f"TOKEN={value}\n")
        else:
            (work / f"{i}.py").write_text(code(generator, library) + f"\nt = '{value}'\n")
    (work / "fine.py").write_text("a = 1\n")
    indexer = Indexer(FolderTree(work), tmp_path / "store", tokenizer)
    indexer.refresh()
    indexer.close()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir())
    segment = Datastore(tmp_path / "store", tokenizer.sha256).snapshot().parts[0].segment
    ids = segment.tokens.astype(int).tolist()
    for value in values:
        assert value.encode() not in stored
        wanted = tokenizer.encode([f"t = '{value}'"])[0].tolist()[2:8]
        assert not any(ids[i : i + 6] == wanted for i in range(len(ids)))
    assert token_count(segment) == len(tokenizer.encode(["a = 1\n"])[0])


def plant_in_a_folder(folder: Path, generator: random.Random, count: int) -> list[str]:
    """Files with secrets, by their path or by what they hold. Gives what must not be stored."""
    inside = [path for path in SECRET_PATHS if path.startswith("{work}/") and "/x/.." not in path]
    values = []
    for number in range(count):
        if number % 2:
            path = folder / f"d{number}" / generator.choice(inside).removeprefix("{work}/")
            value = f"plum{word(generator, 20)}"
        else:
            path = folder / f"d{number}.py"
            _, value = token(generator)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"a = 1\nseed = '''{value}'''\n")
        values += [line for line in value.splitlines() if not line.startswith("-----")]
    return values


def test_forty_planted_files_are_not_stored(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    count = amount(40, 500)
    seed = random.randrange(1 << 32)
    print("seed", seed)
    work, store = tmp_path / "work", tmp_path / "store"
    values = plant_in_a_folder(work, random.Random(seed), count)
    (work / "fine.py").write_text("pear = 1\n")
    indexer = Indexer(FolderTree(work), store, tokenizer)
    indexer.refresh()
    # The watcher names files one by one.
    indexer.refresh(path.relative_to(work).as_posix() for path in work.rglob("*"))
    indexer.close()
    stored = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    parts = Datastore(store, tokenizer.sha256).snapshot().parts
    ids = [token for part in parts for token in part.segment.tokens.astype(int).tolist()]
    assert _runs(ids, tokenizer, "pear = 1")
    found = [one for one in values if _runs(ids, tokenizer, one) or one.encode() in stored]
    assert found == []


def _runs(ids: list[int], tokenizer: TextTokenizer, text: str) -> bool:
    """Whether the middle of a text's tokens stands somewhere in ``ids``."""
    wanted = tokenizer.encode([text])[0].tolist()[1:-1][:6]
    return any(ids[i : i + len(wanted)] == wanted for i in range(len(ids)))


def test_tokens_of_every_kind_are_found_within_code(library: list[str]) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    kinds = set()
    for _ in range(400):
        kind, value = token(generator)
        kinds.add(kind)
        text = f"{code(generator, library)}\nkey = '{value}'\n{code(generator, library)}"
        assert secret_content(text), kind
    assert len(kinds) >= 25


@data_cases("text")
def test_random_letters_may_spell_a_placeholder(text: str) -> None:
    assert secret_content(text)


@pytest.mark.parametrize(
    "value", ["XXXXXXXX1a", "xxxx-xxxx-1a2", "YourPassword1", "TEST-key-1234a"]
)
def test_a_placeholder_is_no_credential(value: str) -> None:
    assert not secret_content(f"Server=db;User Id=sa;Password={value};Encrypt=true")
