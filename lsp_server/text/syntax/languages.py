"""The grammar of a language, by the editor's language id (LSP 3.18) or else by a file's suffix."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language

GRAMMAR_OF_ID = {
    "adoc": "",
    "c++": "cpp",
    "common-lisp": "commonlisp",
    "cuda-cpp": "cuda",
    "delphi": "pascal",
    "docker": "dockerfile",
    "dockercompose": "yaml",
    "dotenv": "properties",
    "emacs-lisp": "elisp",
    "eelixir": "heex",
    "erb": "embeddedtemplate",
    "fortran-modern": "fortran",
    "fortran77": "",
    "git-commit": "gitcommit",
    "github-actions-workflow": "yaml",
    "golang": "go",
    "go.mod": "gomod",
    "go.sum": "gosum",
    "gradle": "groovy",
    "helm": "yaml",
    "hxml": "",
    "java-properties": "properties",
    "javascriptreact": "javascript",
    "jinja-html": "html",
    "json5": "javascript",
    "jsonc": "json",
    "jsonl": "json",
    "jsx": "javascript",
    "ksh": "bash",
    "less": "scss",
    "lisp": "commonlisp",
    "makefile": "make",
    "mdx": "markdown",
    "mysql": "sql",
    "objective-c": "objc",
    "objective-cpp": "objc",
    "objectpascal": "pascal",
    "octave": "matlab",
    "opencl": "c",
    "perl6": "",
    "postgres": "sql",
    "plsql": "sql",
    "proto3": "proto",
    "protobuf": "proto",
    "python2": "python",
    "restructuredtext": "rst",
    "rmd": "markdown",
    "sh": "bash",
    "shell": "bash",
    "shellscript": "bash",
    "snippets": "json",
    "svg": "xml",
    "systemverilog": "verilog",
    "tex": "latex",
    "tfvars": "terraform",
    "opentofu": "terraform",
    "typescriptreact": "tsx",
    "viml": "vim",
    "xsd": "xml",
    "xsl": "xml",
    "yml": "yaml",
    "zsh": "bash",
}
"""Language ids that are not the name of their grammar; an empty name is: none."""

ID_OF_ENDING = {
    "adb": "ada", "ads": "ada", "agda": "agda", "astro": "astro", "bash": "bash", "bib": "bibtex",
    "bicep": "bicep", "bzl": "starlark", "c": "c", "cc": "cpp", "cjs": "javascript",
    "cl": "commonlisp", "clj": "clojure", "cljc": "clojure", "cljs": "clojure", "cmake": "cmake",
    "cpp": "cpp", "cs": "csharp", "css": "css", "cts": "typescript", "cu": "cuda", "cuh": "cuda",
    "cxx": "cpp", "d": "d", "dart": "dart", "el": "elisp", "elm": "elm", "erl": "erlang",
    "ex": "elixir", "exs": "elixir", "f90": "fortran", "f95": "fortran", "f03": "fortran",
    "f08": "fortran", "fish": "fish", "fnl": "fennel", "fs": "fsharp", "fsi": "fsharp_signature",
    "fsx": "fsharp", "gd": "gdscript", "gleam": "gleam", "glsl": "glsl", "go": "go",
    "gradle": "groovy", "graphql": "graphql", "groovy": "groovy", "h": "c", "hcl": "hcl",
    "heex": "heex", "hh": "cpp", "hlsl": "hlsl", "hpp": "cpp", "hrl": "erlang", "hs": "haskell",
    "htm": "html", "html": "html", "hx": "haxe", "hxx": "cpp", "ini": "ini", "java": "java",
    "jl": "julia", "js": "javascript", "json": "json", "jsonc": "json", "jsonl": "json",
    "jsonnet": "jsonnet", "jsx": "javascript", "kt": "kotlin", "kts": "kotlin", "less": "less",
    "libsonnet": "jsonnet", "lisp": "commonlisp", "lua": "lua", "luau": "luau", "m": "objc",
    "markdown": "markdown", "md": "markdown", "mdx": "mdx", "mjs": "javascript", "mk": "make",
    "ml": "ocaml", "mli": "ocaml_interface", "mm": "objc", "mts": "typescript", "nim": "nim",
    "nix": "nix", "odin": "odin", "org": "org", "pas": "pascal", "php": "php", "pl": "perl",
    "pm": "perl", "pp": "puppet", "prisma": "prisma", "properties": "properties", "proto": "proto",
    "ps1": "powershell", "psm1": "powershell", "purs": "purescript", "py": "python",
    "pyi": "python", "pyw": "python", "qml": "qmljs", "r": "r", "rb": "ruby", "rego": "rego",
    "rkt": "racket", "ron": "ron", "rs": "rust", "rst": "rst", "sbt": "scala", "scala": "scala",
    "scm": "scheme", "scss": "scss", "sh": "bash", "sol": "solidity", "sql": "sql",
    "ss": "scheme", "sv": "verilog", "svelte": "svelte", "svg": "xml", "svh": "verilog",
    "swift": "swift", "tcl": "tcl", "tex": "latex", "tf": "terraform", "tfvars": "terraform",
    "thrift": "thrift", "toml": "toml", "ts": "typescript", "tsx": "tsx", "twig": "twig",
    "typ": "typst", "v": "verilog", "vhd": "vhdl", "vhdl": "vhdl", "vim": "vim", "vue": "vue",
    "wat": "wat", "wgsl": "wgsl", "xml": "xml", "xsd": "xml", "xsl": "xml", "yaml": "yaml",
    "yml": "yaml", "zig": "zig", "zsh": "bash",
}  # fmt: skip
"""Language ids by the file's ending, in lower case."""

ID_OF_NAME = {
    "cmakelists.txt": "cmake",
    "containerfile": "dockerfile",
    "dockerfile": "dockerfile",
    "gemfile": "ruby",
    "gnumakefile": "make",
    "jenkinsfile": "groovy",
    "makefile": "make",
    "rakefile": "ruby",
}
"""Language ids by the file's whole name, in lower case."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NOT_FOR_FILES = {"comment", "doxygen", "jsdoc", "luadoc", "luap", "printf", "regex", "test"}
"""Grammars of parts of files."""


def language_of_path(path: str) -> str:
    """Return the language id of a file by its name; empty where the name does not tell."""
    name = PurePosixPath(path.replace("\\", "/")).name.lower()
    return ID_OF_NAME.get(name) or ID_OF_ENDING.get(name.rpartition(".")[2], "")


def grammar_of(language_id: str, path: str = "") -> str:
    """Return the name of the grammar for a language id, else for a path; empty where there is
    none."""
    language_id = language_id.lower()
    grammar = GRAMMAR_OF_ID.get(language_id, language_id)
    if grammar and load_grammar(grammar) is not None:
        return grammar
    if path and (by_path := language_of_path(path)):
        return grammar_of(by_path)
    return ""


@lru_cache(maxsize=64)
def load_grammar(name: str) -> Language | None:
    """Return the grammar of that name; None where the library has none. Costs milliseconds once."""
    if not _NAME.fullmatch(name) or name in _NOT_FOR_FILES:
        return None
    from tree_sitter_language_pack import get_language

    try:
        return get_language(name)  # type: ignore[arg-type]
    except LookupError:
        return None
