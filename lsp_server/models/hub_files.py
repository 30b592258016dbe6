"""Finds any GGUF file of Hugging Face by ``OWNER/NAME[:FILE or quantisation]``, with all its
parts.

What comes is checked against the hub's own record of it, which is all that is known of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accel.errors import BrokenModel
from accel.files.gguf.file import parts_of
from lsp_server.models.hub_download import hub_errors
from lsp_server.models.manifest import BRANCH, HubSource, OfferedModel, Part
from lsp_server.shared.errors import RedraftError

USUAL = ("Q4_K_M", "Q8_0")
"""Quantisations that are taken where several are there and none is named, the first one first."""
_NAMED = re.compile(
    r"(?:(?:https?://)?(?:huggingface\.co|hf\.co)/)?(?P<repository>[\w.-]+/[\w.-]+)"
    r"(?::(?P<which>[^:]+))?/?"
)
_PROJECTOR = "mmproj"


def names_a_repository(wanted: str) -> bool:
    """Whether a name is one of a file on Hugging Face."""
    return _NAMED.fullmatch(wanted) is not None


def find_in_hub(wanted: str) -> OfferedModel:
    """The model that a name stands for, at the newest commit of its repository. Raises
    RedraftError."""
    named = _NAMED.fullmatch(wanted)
    assert named is not None, wanted
    repository, which = named["repository"], named["which"] or ""
    with hub_errors(HubSource(repository, BRANCH, "")):
        from huggingface_hub import HfApi

        found = HfApi().model_info(repository, files_metadata=True)
    models = _models(found.siblings or [])
    if not models:
        raise RedraftError(
            f"{repository} has no GGUF file; look for a repository whose name ends in -GGUF"
        )
    path = _chosen(models, which, repository)
    parts = models[path]
    return OfferedModel(
        name=f"{repository}:{parts[0].file.removesuffix('.gguf')}",
        file=parts[0].file,
        nbytes=sum(part.nbytes for part in parts),
        sha256=parts[0].sha256,
        licence=_licence(found),
        origin=HubSource(repository, str(found.sha or BRANCH), path),
        split=parts,
        purpose="not checked by Redraft: its hash is what the hub says of it",
    )


def _models(siblings: Sequence[Any]) -> dict[str, tuple[Part, ...]]:
    """The GGUF files of a repository by the path of the first, each with all its parts. Raises
    RedraftError where a part is missing."""
    by_path = {
        str(one.rfilename): one
        for one in siblings
        if str(one.rfilename).lower().endswith(".gguf")
        and not str(one.rfilename).rpartition("/")[2].lower().startswith(_PROJECTOR)
    }
    found: dict[str, tuple[Part, ...]] = {}
    for path in sorted(by_path):
        folder, slash, name = path.rpartition("/")
        try:
            names = _names_of_parts(name)
        except BrokenModel:
            continue
        paths = [f"{folder}{slash}{each}" for each in names]
        if path == paths[0]:
            found[path] = tuple(_part(by_path.get(each), each) for each in paths)
    return found


def _names_of_parts(name: str) -> list[str]:
    return [part.name for part in parts_of(Path(name))]


def _part(sibling: Any, path: str) -> Part:
    record = getattr(sibling, "lfs", None)
    sha256 = getattr(record, "sha256", "") or ""
    if sibling is None:
        raise RedraftError(f"{path} is missing in its repository; take another file")
    return Part(path, int(getattr(record, "size", None) or sibling.size or 0), sha256)


def _chosen(models: dict[str, tuple[Part, ...]], which: str, repository: str) -> str:
    """The path that is meant: a file's, a part of its name, or a quantisation; the usual one where
    nothing is said. Raises RedraftError."""
    wanted = [which] if which else [*USUAL, ""]
    for words in wanted:
        fits = [path for path in models if _is_meant(path, words)]
        if len(fits) == 1:
            path = fits[0]
            break
        if fits and which:
            raise _unclear(fits, repository, f"{which} may be any of them")
    else:
        why = f"nothing of it is called {which}" if which else "it has several files"
        raise _unclear(list(models), repository, why)
    if not all(part.sha256 for part in models[path]):
        raise RedraftError(
            f"the hub has no hash of {path} in {repository}, so nothing can check it; take another"
        )
    return path


def _is_meant(path: str, words: str) -> bool:
    low, name = words.lower(), path.lower()
    if low in (name, name.rpartition("/")[2], name.rpartition("/")[2].removesuffix(".gguf")):
        return True
    return not low or re.search(rf"(^|[-._/]){re.escape(low)}([-._/]|$)", name) is not None


def _unclear(paths: Sequence[str], repository: str, why: str) -> RedraftError:
    shown = ", ".join(paths[:20]) + (", …" if len(paths) > 20 else "")
    return RedraftError(f"{why}; give one of {repository}: {shown}")


def _licence(found: Any) -> str:
    card = found.card_data.to_dict() if found.card_data is not None else {}
    tagged = [tag[8:] for tag in found.tags or [] if str(tag).startswith("license:")]
    named = card.get("license_name") if card.get("license") in (None, "other") else None
    licence = named or card.get("license") or (tagged[0] if tagged else "")
    return str(licence[0] if isinstance(licence, list) else licence) or "not named"
