"""Paths at which credentials lie by custom (manuals of the tools; XDG), decided on the whole path:
``~/.aws`` is one, a project's own folder of that name is not."""

from __future__ import annotations

import os
import posixpath
import re
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

_HOME_FOLDERS = Path(__file__).with_name("secret_homes.txt").read_text("utf-8").splitlines()
"""Below a home, in small letters. A file may be listed by itself."""
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".env.d", ".envs"})
"""Held back wherever they lie."""
_SYSTEM_FOLDERS = re.compile(
    r"/etc/(?:g?shadow-?$|ssl/private/|letsencrypt/(?:live|archive)/|wireguard/|sudoers|krb5\.keytab$"
    r"|kubernetes/.*\.conf$|ssh/ssh_host_[^/]*_key$)|(?:/var)?/run/secrets/|/proc/[^/]+/environ$"
)
_HOME = re.compile(
    r"(?:/?[a-z]:|//[^/]+/[^/]+|/mnt/[a-z]|/cygdrive/[a-z]|/[a-z]|/host|/var|/export|/usr|/private"
    r"|/system/volumes/data)?/(?:root|(?:home|users)/[^/]+)/|~[^/]*/|\$\{?home\}?/"
)
"""Homes as systems name them, also those of another machine that an editor is connected to."""

_CUSTOMS = Path(__file__).with_suffix(".txt").read_text("utf-8")
"""Whose manual says that credentials lie there: names, or folders and what lies below them."""
_BY_CUSTOM = [
    (re.compile(translate(f"*/{pattern}" if "/" in pattern else pattern)), pattern, source)
    for source, _, patterns in (line.partition(": ") for line in _CUSTOMS.strip().splitlines())
    for pattern in patterns.split()
]
_ANY_NAME, _ANY_FOLDER = (
    re.compile("|".join(row[0].pattern for row in _BY_CUSTOM if ("/" in row[1]) is folder))
    for folder in (False, True)
)
_DATA = "yml yaml json json5 toml ini env txt properties xml conf cfg enc csv plist edn config db"
_STORES = re.compile(
    rf"(?:secrets?|credentials?)(?:\.[\w-]+)?\.(?:{'|'.join(_DATA.split())})|\.(?:secrets?|credentials?)"
    rf"\.(?:{'|'.join(_DATA.split())})"
)
"""``secrets.prod.yml``; ``secrets.kt`` is a source file, and what it holds decides."""
_INNOCENT_STORES = re.compile(r"\.(?:schema|example|sample|template|dist|d)\.|(?:^|/)templates?/")
_HARMLESS_ENDINGS = (".example", ".sample", ".template", ".dist", ".tmpl", ".md", ".rst", ".pub")
_HARMLESS_NAMES = re.compile(
    r"(?:example|sample|template|dist|defaults?)[._-]?env|\.envoy.*"
    r"|.*\.env[._-](?:example|sample|template|dist|tmpl|schema)[._-].*"
)
_HARMLESS_IN_FOLDERS = re.compile(
    r"(?:package(?:-lock)?|tsconfig[\w.-]*|project|plugin)\.json|(?:cargo|pyproject)\.toml|setup\.cfg"
    r"|go\.(?:mod|sum)|makefile|dockerfile|rakefile|gemfile|build(?:\.bazel|\.gradle)?|pom\.xml"
    r"|cmakelists\.txt|(?:kustomization|chart)\.ya?ml|\.sops\.ya?ml|\.git\w+|\.keep|\.editorconfig"
    r"|(?:licen[cs]e|readme|changelog)[\w.-]*|.*\.(?:sh|bat|ps1|j2|erb|tpl|hbs|mustache)"
)
"""Files of a project whose folder is named as a store of secrets is."""
_SOURCE = (
    "py pyi c h cc cpp cxx hpp rs go js mjs cjs jsx ts mts cts tsx java kt kts scala swift dart rb "
    "php lua cs fs vb ex exs erl hs ml mli clj cljs groovy jl nim zig pl pm r m mm vue svelte html "
    "css scss less sql proto graphql tf bicep ipynb"
)
_SOURCE_ENDINGS = tuple(f".{ending}" for ending in _SOURCE.split())
_COPIES = re.compile(r"^\.?#|(?:~|#|\.(?:bak|old|orig|save|backup|copy|tmp|sw[a-p]))$")
"""What editors and people add to the name of a copy."""


def secret_path(path: str) -> str:
    """Return why a path says that credentials lie there; empty when it does not. ``path`` is
    absolute, or relative to a folder that is no home; parted by ``/`` or a backslash, in any
    case."""
    path = path.replace("\\", "/").casefold()
    if "/." in path or "//" in path:
        path = _normal(path)
    folders, _, name = path.rpartition("/")
    if "." in folders and (folders_found := _SECRET_FOLDERS.intersection(folders.split("/"))):
        return f"secret: in a folder named {min(folders_found)}"
    if folder := _folder_at_home(path):
        return f"secret: in ~/{folder}"
    if _SYSTEM_FOLDERS.match(path):
        return "secret: a folder in which systems keep keys"
    return _secret_name(path, name)


def _normal(path: str) -> str:
    """Without ``.`` and ``..``; what begins with two slashes is on another machine."""
    return posixpath.normpath(path) + ("/" if path.endswith("/") else "")


def _folder_at_home(path: str) -> str:
    """Return the folder or file with keys, of a home, that holds ``path``, if any."""
    for rest in _below_homes(path):
        for folder in _HOME_FOLDERS:
            if rest.startswith(folder) and rest[len(folder) : len(folder) + 1] in ("", "/", "."):
                return folder
    return ""


def _below_homes(path: str) -> list[str]:
    """``path`` as seen from each home that it lies in."""
    folders_found = [
        path[len(home) :] for home in _own_homes(os.path.expanduser("~")) if path.startswith(home)
    ]
    if (match := _HOME.match(path)) is not None:
        folders_found.append(path[match.end() :])
    return folders_found


@lru_cache(maxsize=8)
def _own_homes(home: str) -> tuple[str, ...]:
    """Return the user's home as named and as on the disk, each with a slash at its end."""
    named = {home, os.path.realpath(home)}
    return tuple(
        name.replace("\\", "/").casefold().rstrip("/") + "/" for name in named if len(name) > 1
    )


def _secret_name(path: str, name: str) -> str:
    copy = name
    while (shorter := _COPIES.sub("", copy)) != copy and shorter:
        copy = shorter
    if copy == name:
        return _reason_of_name(path, name)
    # Vim puts a dot before the name of a copy.
    return _reason_of_name(path, copy) or _reason_of_name(path, copy.removeprefix("."))


def _reason_of_name(path: str, name: str) -> str:
    if name.endswith(_HARMLESS_ENDINGS) or _HARMLESS_NAMES.fullmatch(name):
        return ""
    if _STORES.fullmatch(name) and not _INNOCENT_STORES.search(path):
        return f"secret: the name is {name}"
    # A source file may have any name; what it holds decides.
    if name.endswith(_SOURCE_ENDINGS):
        return ""
    path = f"{path.rpartition('/')[0]}/{name}"
    innocent = _INNOCENT_STORES.search(path) or _HARMLESS_IN_FOLDERS.fullmatch(name)
    if not _ANY_NAME.match(name) and (innocent or not _ANY_FOLDER.match(path)):
        return ""
    return next(
        f"secret: the name matches {pattern} ({source})"
        for expression, pattern, source in _BY_CUSTOM
        if expression.match(path if "/" in pattern else name)
    )
