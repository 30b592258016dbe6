"""Finds any GGUF file of Hugging Face by ``OWNER/NAME[:FILE or quantisation]``, with all its parts.
What comes is checked against the hub's own record of it, which is all that is known of it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from accel.errors import BrokenModel
from accel.files.gguf.file import parts_of
from lsp_server.models.hub_download import hub_errors
from lsp_server.models.manifest import BRANCH, HubSource, OfferedModel, Part
from lsp_server.models.stores import is_beside_a_model
from lsp_server.shared.errors import RedraftError

USUAL = ("Q4_K_M", "Q8_0")
"""Quantisations that are taken where several are there and none is named, the first one first."""
_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
_ADDRESS = re.compile(r"(?:https?|hf)://", re.IGNORECASE)
_NAMED = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)"
    r"(?:/(?:blob|resolve|raw|tree)/(?P<revision>[^/]+)(?P<inside>/.+)?"
    r"|(?P<file>/.+\.gguf)"
    r"|:(?P<which>[^:]+))?/?",
    re.IGNORECASE,
)
_NO_NAME = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]|(?:^|/)\.\.?(?:/|$)')
"""What no file is called on every system, or leads out of its folder on one of them."""
_LATEST = "latest"
"""What Ollama calls the usual one."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A repository, a branch or commit of it, and what of it is meant; empty for the usual ones."""

    repository: str
    revision: str
    which: str


def named_in_hub(typed: str) -> _Named | None:
    """Return the repository and file that ``OWNER/NAME[:FILE or quantisation]``,
    ``OWNER/NAME/FILE`` or the address of a page names."""
    address = typed.strip()
    is_address = _ADDRESS.match(address) is not None
    address = _ADDRESS.sub("", address, count=1)
    mirror = urlsplit(os.environ.get("HF_ENDPOINT", "").strip()).netloc.lower()
    host, _, inside = address.partition("/")
    if host and host.lower() in (*_HOSTS, mirror):
        is_address, address = True, inside
    if is_address:
        address = re.split(r"[?#]", address, maxsplit=1)[0]
    match = _NAMED.fullmatch(address)
    if match is None:
        return None
    fields = {
        name: unquote(field) if is_address else field for name, field in match.groupdict("").items()
    }
    which = (fields["inside"] or fields["file"]).strip("/") or fields["which"]
    revision = "" if fields["revision"] == BRANCH else fields["revision"]
    return _Named(fields["repository"], revision, "" if which.lower() == _LATEST else which)


def find_in_hub(name: str) -> OfferedModel:
    """Return the model of a name, at its repository's newest commit. Raises RedraftError."""
    named = named_in_hub(name)
    assert named is not None, name
    repository = named.repository
    with hub_errors(HubSource(repository, named.revision or BRANCH, "")):
        from huggingface_hub import HfApi

        info = HfApi().model_info(repository, revision=named.revision or None, files_metadata=True)
    models, missing = _models(info.siblings or [])
    if not models and not missing:
        raise RedraftError(
            f"{repository} has no GGUF file; look for a repository whose name ends in -GGUF"
        )
    path = _chosen(models, missing, named.which, repository)
    files = models[path]
    # What two folders call alike is told apart by the folder.
    alike = sum(each.rpartition("/")[2] == files[0].file for each in models)
    inside = path if alike > 1 else files[0].file
    return OfferedModel(
        name=f"{repository}:{inside.removesuffix('.gguf')}",
        file=files[0].file,
        nbytes=sum(file.nbytes for file in files),
        sha256=files[0].sha256,
        licence=_licence(info),
        origin=HubSource(repository, str(info.sha or BRANCH), path),
        split=files,
        purpose="not checked by Redraft: its hash is what the hub says of it",
    )


def _models(siblings: Sequence[Any]) -> tuple[dict[str, tuple[Part, ...]], dict[str, str]]:
    """Return the GGUF files of a repository by the path of the first, each with all its parts; and
    of those that are not whole the first part that the repository lacks."""
    by_path = {
        str(sibling.rfilename): sibling
        for sibling in siblings
        if str(sibling.rfilename).lower().endswith(".gguf")
        and not is_beside_a_model(str(sibling.rfilename).rpartition("/")[2])
        and not _NO_NAME.search(str(sibling.rfilename))
    }
    complete: dict[str, tuple[Part, ...]] = {}
    missing: dict[str, str] = {}
    for path in sorted(by_path):
        folder, slash, name = path.rpartition("/")
        try:
            names = [piece.name for piece in parts_of(Path(name))]
        except BrokenModel:
            continue
        paths = [f"{folder}{slash}{each}" for each in names]
        lacked = [each for each in paths if each not in by_path]
        if lacked:
            missing[paths[0]] = lacked[0]
        else:
            complete[paths[0]] = tuple(_part(by_path[each], each) for each in paths)
    return complete, missing


def _part(sibling: Any, path: str) -> Part:
    record = getattr(sibling, "lfs", None)
    sha256 = getattr(record, "sha256", "") or ""
    return Part(path, int(getattr(record, "size", None) or sibling.size or 0), sha256)


def _chosen(
    models: dict[str, tuple[Part, ...]], missing: dict[str, str], which: str, repository: str
) -> str:
    """Return the path that is meant: a file's, a part of its name, or a quantisation; the usual one
    where nothing is said. Raises RedraftError."""
    for words in [which] if which else [*USUAL, ""]:
        named = [path for path, files in models.items() if words in [file.path for file in files]]
        fits = named or [path for path in models if _is_meant(path, words)]
        if len(fits) == 1:
            path = fits[0]
            break
        if fits and which:
            raise _unclear(fits, repository, f"{which} may be any of them")
    else:
        lacked = [each for path, each in missing.items() if _is_meant(path, which)]
        if lacked and (which or not models):
            raise RedraftError(f"{lacked[0]} is missing in its repository; take another file")
        why = f"nothing of it is called {which}" if which else "it has several files"
        raise _unclear(list(models), repository, why)
    if not all(file.sha256 for file in models[path]):
        raise RedraftError(
            f"the hub has no hash of {path} in {repository}, so nothing can check it; take another"
        )
    return path


def _is_meant(path: str, words: str) -> bool:
    low, name = words.lower(), path.lower()
    base = name.rpartition("/")[2]
    if low in (name, base, base.removesuffix(".gguf"), name.removesuffix(".gguf")):
        return True
    return not low or re.search(rf"(^|[-._/]){re.escape(low)}([-._/]|$)", name) is not None


def _unclear(paths: Sequence[str], repository: str, why: str) -> RedraftError:
    listed = ", ".join(paths[:20]) + (", …" if len(paths) > 20 else "")
    return RedraftError(f"{why}; give one of {repository}: {listed}")


def _licence(info: Any) -> str:
    card = info.card_data.to_dict() if info.card_data is not None else {}
    tagged = [tag[8:] for tag in info.tags or [] if str(tag).startswith("license:")]
    named = card.get("license_name") if card.get("license") in (None, "other") else None
    licence = named or card.get("license") or (tagged[0] if tagged else "")
    return str(licence[0] if isinstance(licence, list) else licence) or "not named"
