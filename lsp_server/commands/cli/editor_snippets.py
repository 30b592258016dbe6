"""Configuration snippets for the editors that are installed on this machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EditorSnippet:
    """file: where ``text`` goes; command: how the editor is called on PATH."""

    name: str
    command: str
    file: str
    text: str


SNIPPETS = (
    EditorSnippet(
        "VS Code",
        "code",
        "settings.json",
        "// Nothing is needed once the extension redraft.vsix is installed;\n"
        '// "redraft.serverPath" is for a server that is not on PATH.',
    ),
    EditorSnippet(
        "Neovim",
        "nvim",
        "~/.config/nvim/init.lua",
        "require('redraft').setup({ keymaps = { accept = '<Tab>', accept_word = '<M-w>' } })",
    ),
    EditorSnippet(
        "Helix",
        "hx",
        "~/.config/helix/languages.toml",
        '[language-server.redraft]\ncommand = "redraft"\nargs = ["serve"]\ntimeout = 60\n\n'
        '[[language]]\nname = "python"\nlanguage-servers = ["redraft"]',
    ),
    EditorSnippet(
        "Emacs",
        "emacs",
        "~/.emacs.d/init.el",
        "(with-eval-after-load 'eglot\n  (add-to-list 'eglot-server-programs\n"
        '               \'((python-mode python-ts-mode) . ("redraft" "serve"))))\n'
        "(add-hook 'python-mode-hook #'eglot-ensure)",
    ),
    EditorSnippet(
        "Sublime Text",
        "subl",
        "LanguageServers.sublime-settings",
        '{ "redraft": { "enabled": true, "command": ["redraft", "serve"],\n'
        '               "selector": "source | text" } }',
    ),
    EditorSnippet(
        "Kate",
        "kate",
        "Settings, LSP Client, User Server Settings",
        '{ "servers": { "python": { "command": ["redraft", "serve"],\n'
        '    "rootIndicationFileNames": [".git"],\n'
        '    "initializationOptions": { "redraft": { "applyEdit": true } } } } }',
    ),
)


def snippets_here() -> list[EditorSnippet]:
    """Return those of the editors that are on PATH."""
    return [snippet for snippet in SNIPPETS if shutil.which(snippet.command)]
