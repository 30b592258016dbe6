"""``python -m release check FOLDER``: each file is installed into an empty environment, which then
has to suggest something."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from release.artifacts import SUMS, sha256
from release.extension_manifest import extension_problems
from release.machine_code import told_code
from tests.benchmarks.keystrokes.editor_process import EditorProcess, private_environment

PATIENCE_S = 900.0
"""The first start compiles, and a package may come from far away."""
CODE = """\
def area(width, height):
    return width * height


def volume(width, height, depth):
    return \n"""
POSITION = {"line": 5, "character": 11}
INVOKED = {"triggerKind": 1}
"""What a user asks for by hand is shown in full."""
_NEOVIM = """
-- Before it has started, Neovim attaches no server to what is open.
vim.api.nvim_create_autocmd('VimEnter', { callback = vim.schedule_wrap(function()
  local file, answer, patience = unpack(vim.split(vim.env.REDRAFT_CHECK, '\\n'))
  vim.cmd.runtime('plugin/redraft.lua')
  require('redraft').setup({})
  vim.cmd.edit(file)
  vim.cmd.RedraftInstall()
  local client
  vim.wait(tonumber(patience) * 1000, function()
    client = vim.lsp.get_clients({ name = 'redraft', bufnr = 0 })[1]
    -- Another server may be on PATH.
    local is_own = client and client.config.cmd[1]:find('redraft/server', 1, true)
    return is_own and client.initialized
  end, 100)
  local function ask()
    local params = {
      textDocument = { uri = vim.uri_from_bufnr(0) },
      position = { line = 5, character = 11 },
      context = { triggerKind = 1 },
    }
    local request = client.request_sync
    local told = vim.fn.has('nvim-0.11') == 1
        and request(client, 'textDocument/inlineCompletion', params, 120000, 0)
      or request('textDocument/inlineCompletion', params, 120000, 0)
    local items = vim.tbl_get(told or {}, 'result', 'items') or {}
    return items[1] and items[1].insertText
  end
  local text
  if client then
    vim.wait(tonumber(patience) * 1000, function()
      text = ask()
      return text ~= nil
    end, 500)
  end
  local out = assert(io.open(answer, 'w'))
  out:write(text or ('nothing; ' .. vim.fn.execute('messages')))
  out:close()
  vim.cmd('qa!')
end) })
"""


def check(folder: Path, model: Path, neovim: Path | None) -> None:
    """Print a line for each file. Raises SystemExit where one has a fault."""
    check_sums(folder)
    print(f"{SUMS}: every file is as it was built")
    for name, count in check_bill(_only(folder, "*.cdx.json")).items():
        print(f"bill of materials: {count} packages of {name}")
    wheel = _only(folder, "*-none-any.whl")
    for line in told_code(wheel):
        print(f"{wheel.name}: code for {line}")
    with tempfile.TemporaryDirectory(prefix="redraft-release-") as scratch:
        home = Path(scratch)
        surroundings = private_environment(home / "home")
        choices = Path(surroundings["XDG_CONFIG_HOME"], "redraft/models.json")
        choices.parent.mkdir(mode=0o700)
        choices.write_text(json.dumps({"completion": str(model)}), "utf-8")
        for file in (*sorted(folder.glob("*.whl")), _only(folder, "redraft-*.tar.gz")):
            with _timed(file.name):
                command = install_by_pip(home / file.name, file)
                print(f"{file.name}: {first_suggestion(command, surroundings, home)!r}")
        extension = _only(folder, "*.vsix")
        if problems := extension_problems(extension, wheel):
            raise SystemExit(f"release: {extension.name}: " + "; ".join(problems))
        with _timed(extension.name):
            command = install_from_extension(extension, home / "extension")
            print(f"{extension.name}: {first_suggestion(command, surroundings, home)!r}")
        tree = _only(folder, "redraft.nvim-*.tar.gz")
        if neovim is None:
            print(f"{tree.name}: was not tried; --neovim names a Neovim")
            return
        with _timed(tree.name):
            print(f"{tree.name}: {suggestion_in_neovim(tree, neovim, surroundings, home)!r}")


def check_sums(folder: Path) -> None:
    """Raises SystemExit where a file is missing, unlisted or another than when it was built."""
    lines = (folder / SUMS).read_text("utf-8").splitlines()
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    sums = {file.name: sha256(file) for file in folder.iterdir() if file.name != SUMS}
    if differing := sorted(dict(listed.items() ^ sums.items())):
        raise SystemExit(f"release: {SUMS} and {', '.join(differing)} differ; build again")


def check_bill(file: Path) -> dict[str, int]:
    """Return the number of packages of each registry in a bill. Raises SystemExit where one has no
    licence, or a reference leads nowhere."""
    bill = json.loads(file.read_text("utf-8"))
    counts: dict[str, int] = {}
    for component in bill["components"]:
        if not component.get("licenses"):
            raise SystemExit(f"release: {file.name}: {component['name']} names no licence")
        kind = component["purl"].partition(":")[2].partition("/")[0]
        counts[kind] = counts.get(kind, 0) + 1
    references = {
        component["bom-ref"] for component in [*bill["components"], bill["metadata"]["component"]]
    }
    if lost := {ref for each in bill["dependencies"] for ref in each["dependsOn"]} - references:
        raise SystemExit(f"release: {file.name}: {min(lost)} is in no list")
    return counts


def install_by_pip(folder: Path, file: Path) -> Path:
    """Install a file with what it needs; the command ``redraft``."""
    venv.create(folder, with_pip=True)
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run(*pip, file)
    return folder / "bin/redraft"


def install_from_extension(file: Path, folder: Path) -> Path:
    """Install the server that an extension carries as the extension does; its command."""
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    installer = folder / "extension/server/install.py"
    _run(sys.executable, "-I", installer, "install", "--folder", folder / "environments")
    current = json.loads((folder / "environments/current.json").read_text("utf-8"))
    return Path(current["command"])


def first_suggestion(command: Path, surroundings: dict[str, str], folder: Path) -> str:
    """Return what a server suggests in a new file. Raises SystemExit where it suggests nothing."""
    work = Path(tempfile.mkdtemp(dir=folder))
    file = work / "area.py"
    file.write_text(CODE, "utf-8")
    client = EditorProcess([str(command), "serve"], surroundings, lambda *_: None, work / "log")
    try:
        capabilities: dict[str, Any] = {"processId": None, "rootUri": work.as_uri()}
        capabilities["capabilities"] = {"textDocument": {"inlineCompletion": {}}}
        client.request("initialize", capabilities)
        client.notify("initialized", {})
        document: dict[str, Any] = {"uri": file.as_uri()}
        opened = {**document, "languageId": "python", "version": 1, "text": CODE}
        client.notify("textDocument/didOpen", {"textDocument": opened})
        request = {"textDocument": document, "position": POSITION, "context": INVOKED}
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            answer = client.request("textDocument/inlineCompletion", request, PATIENCE_S) or {}
            if items := answer.get("items"):
                return str(items[0]["insertText"])
            time.sleep(0.5)
        status = client.request("redraft/status", {})
        raise SystemExit(f"release: {command} suggests nothing: {status['message']}")
    finally:
        client.close()
        _run(command, "stop", surroundings=surroundings)


def suggestion_in_neovim(
    tree: Path, neovim: Path, surroundings: dict[str, str], folder: Path
) -> str:
    """Return what the plug-in's own server suggests in a real Neovim once :RedraftInstall has
    run."""
    with tarfile.open(tree) as archive:
        archive.extractall(folder, filter="data")
    plugin = folder / tree.name.removesuffix(".tar.gz")
    work = Path(tempfile.mkdtemp(dir=folder))
    file, script, answer = work / "area.py", work / "check.lua", work / "answer"
    file.write_text(CODE, "utf-8")
    script.write_text(_NEOVIM, "utf-8")
    lines = "\n".join(map(str, (file, answer, PATIENCE_S)))
    command = [neovim, "--headless", "--clean", "--cmd", f"set rtp^={plugin}", "-S", script]
    _run(*command, surroundings={**surroundings, "REDRAFT_CHECK": lines})
    text = answer.read_text("utf-8")
    if text.startswith("nothing; "):
        raise SystemExit(f"release: {tree.name} suggests {text}")
    data = Path(surroundings["XDG_DATA_HOME"])
    (current,) = data.glob("nvim/redraft/server/current.json")
    _run(json.loads(current.read_text("utf-8"))["command"], "stop", surroundings=surroundings)
    return text


def _only(folder: Path, pattern: str) -> Path:
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        raise SystemExit(f"release: {folder} holds {len(files)} files {pattern}, and not one")
    return files[0]


@contextmanager
def _timed(name: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"{name}: first suggestion after {time.monotonic() - started:.0f} s", flush=True)


def _run(*command: object, surroundings: dict[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    result = subprocess.run(
        words, check=False, env=surroundings, capture_output=True, text=True, timeout=PATIENCE_S
    )
    if result.returncode:
        raise SystemExit(f"release: `{' '.join(words)}` failed\n{result.stdout}{result.stderr}")
