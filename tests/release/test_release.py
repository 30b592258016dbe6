"""What is released: distributions, the Neovim tree, notes, sums and the bill of materials."""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from text_cases import data_beside

from release.artifacts import release_notes, write_neovim_tree, write_sums
from release.bill_of_materials import bill_of_materials
from release.checking import check_bill, check_sums
from release.distributions import ROOT, build_sdist, build_wheel, without_local_links

DATA = data_beside(__file__)

LOCK = DATA["LOCK"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def test_the_wheel_needs_no_torch(wheel: Path) -> None:
    needed = metadata_of(wheel).get_all("Requires-Dist") or []
    without_extras = [one for one in needed if "extra ==" not in one]
    assert any(one.startswith("numba") for one in without_extras)
    assert not [one for one in without_extras if re.match(r"torch|transformers|peft", one)]
    assert [one for one in needed if re.match(r'torch.*extra == "torch"', one)]


def test_the_wheel_holds_what_runs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.partition("/")[0] for name in names}
    packages = {"accel", "lsp_server", "operating_system", "repo_index"}
    assert top - packages == {one for one in top if one.endswith(".dist-info")}
    assert packages <= top
    assert {"lsp_server/models/manifest.json", "accel/py.typed"} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))]


def test_a_page_leaves_the_source_tree_with_all_its_words(wheel: Path) -> None:
    page = str(metadata_of(wheel).get_payload())
    assert "A language server" in page
    assert [one for one in re.findall(r"\]\(([^)]+)\)", page) if one[:6] != "https:"] == []
    assert "picture" not in page
    page = (
        "![x](../x.png)\n\n*A picture.*\n\nAlt+[ shows [all](../a.md) of [it](https://a), [i](m/i)."
    )
    told = "Alt+[ shows all of [it](https://a), "
    assert without_local_links(page) == f"{told}i."
    assert without_local_links(page, "m/") == f"{told}[i](m/i)."


def test_the_source_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build_sdist(tmp_path)) as archive:
        names = {one.partition("/")[2] for one in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        code = {one for one in archive.namelist() if ".dist-info/" not in one}
    assert code <= names
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names


def test_the_neovim_tree_stands_alone(tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.mkdir()
    (server / "server.json").write_text("{}", "utf-8")
    (server / ".pins").write_text("", "utf-8")
    made = []
    for number in range(2):
        file = tmp_path / f"{number}.tar.gz"
        write_neovim_tree(file, "1.2.3", server)
        made.append(file.read_bytes())
    assert made[0] == made[1], "the same source gives the same bytes"
    with tarfile.open(tmp_path / "0.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    tree = tmp_path / "redraft.nvim-1.2.3"
    found = {str(one.relative_to(tree)) for one in tree.rglob("*") if one.is_file()}
    assert {"plugin/redraft.lua", "lua/redraft/init.lua", "doc/redraft.txt", "LICENSE"} <= found
    assert {name for name in found if name.startswith("server/")} == {"server/server.json"}
    links = re.findall(r"\]\(([^)]+)\)", (tree / "README.md").read_text("utf-8"))
    assert links
    assert [one for one in links if not one.startswith("https:") and one not in found] == []
    assert "id: pkg:pypi/redraft@1.2.3" in (tree / "mason/package.yaml").read_text("utf-8")


def test_notes_say_what_changed_up_to_a_version() -> None:
    sections = {"Unreleased": "- new", "1.1.0 (unreleased)": "- named", "1.0": "- old"}
    log = "# Changelog\n\n" + "".join(f"## {one}\n\n{text}\n\n" for one, text in sections.items())
    assert release_notes(log, "1.1.0") == "# Redraft 1.1.0\n\n- new\n\n- named\n"
    assert release_notes(log, "1.0") == "# Redraft 1.0\n\n- new\n\n- old\n"
    with pytest.raises(SystemExit, match=r"says nothing of 2\.0"):
        release_notes("# Changelog\n\n## 1.0\n\n- old\n", "2.0")


def test_the_changelog_has_notes() -> None:
    version = "0.1.0"
    assert len(release_notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version)) > 100


@pytest.mark.parametrize("change", ["another content", "one more", "one less"])
def test_a_file_that_is_not_the_built_one_is_found(change: str, tmp_path: Path) -> None:
    for name in ("a.whl", "b.vsix"):
        (tmp_path / name).write_text(name, "utf-8")
    write_sums(tmp_path)
    check_sums(tmp_path)
    if change == "one less":
        (tmp_path / "b.vsix").unlink()
    else:
        name = "b.vsix" if change == "another content" else "c.tar.gz"
        (tmp_path / name).write_text("else", "utf-8")
    with pytest.raises(SystemExit, match=r"(b\.vsix|c\.tar\.gz) differ"):
        check_sums(tmp_path)


def describe(site_packages: Path, name: str, text: str) -> None:
    folder = site_packages / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    about = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{text}"
    (folder / "METADATA").write_text(about, "utf-8")


def test_the_bill_lists_what_is_installed_andbundled(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    needs = "Requires-Dist: Jinja2>=3\nRequires-Dist: torch; extra == 'torch'\n"
    describe(site, "redraft", f"License-Expression: Apache-2.0\n{needs}")
    describe(site, "jinja2", "Classifier: License :: OSI Approved :: BSD License\n"
             "Requires-Dist: MarkupSafe[extra]>=2 ; python_version > '3'\n")  # fmt: skip
    describe(site, "markupsafe", "License: BSD-3-Clause\n\n")
    describe(site, "torch", "License: BSD\n")
    describe(site, "pip", "License: MIT\n")
    requirements = (
        f"jinja2==1.0 \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n"
    )
    file = tmp_path / "bill.json"
    file.write_text(bill_of_materials(site, requirements, LOCK), "utf-8")
    assert check_bill(file) == {"pypi": 2, "npm": 2}
    bill = json.loads(file.read_text("utf-8"))
    assert bill["metadata"]["component"]["name"] == "redraft"
    parts = {one["name"]: one for one in bill["components"]}
    assert set(parts) == {"jinja2", "markupsafe", "vscode-languageclient", "semver"}
    files = parts["jinja2"]["externalReferences"]
    assert [one["hashes"][0]["content"] for one in files] == ["a" * 64, "b" * 64]
    assert parts["semver"]["hashes"] == [{"alg": "SHA-512", "content": "010204"}]
    assert parts["markupsafe"]["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]


def test_a_part_without_a_licence_is_found(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    describe(site, "redraft", "License-Expression: Apache-2.0\nRequires-Dist: odd\n")
    describe(site, "odd", "")
    file = tmp_path / "bill.json"
    file.write_text(bill_of_materials(site, "", LOCK), "utf-8")
    with pytest.raises(SystemExit, match="odd names no licence"):
        check_bill(file)
