"""The models that can be fetched: of each it is known where it lies, its hash and its licence. What
was not checked has no hash here, and is not offered."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lsp_server.models.card import ModelCard
from lsp_server.shared.errors import RedraftError

MANIFEST = Path(__file__).with_name("manifest.json")
DEFAULT = "default"
DEFAULT_FILE = "redraft-default-135m.gguf"
"""The model that Redraft makes itself: its name, and that of its file."""
VERSION = 1
BRANCH = "main"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file of a repository on Hugging Face, at one commit (40 hexadecimal digits), or at a branch
    where no commit is known: its hash says then whether it is still the same."""

    repository: str
    revision: str
    path: str

    @property
    def shown(self) -> str:
        """The source in words."""
        return f"{self.repository} at {self.revision[:12]} (Hugging Face)"

    @property
    def checked(self) -> bool:
        """True if it names one file of one repository."""
        has_revision = self.revision == BRANCH or _REVISION.fullmatch(self.revision)
        return bool(_REPOSITORY.fullmatch(self.repository) and has_revision and self.path)


@dataclass(frozen=True, slots=True)
class PackageSource:
    """A file in a Python package, of which the hash is known, too."""

    requirement: str
    sha256: str
    member: str

    @property
    def shown(self) -> str:
        """The source in words."""
        return f"{self.requirement} (a package index)"

    @property
    def checked(self) -> bool:
        """True if it names one package."""
        return "==" in self.requirement and _SHA256.fullmatch(self.sha256) is not None


@dataclass(frozen=True, slots=True)
class Base:
    """The downloaded file of a model that is made here by adding an adapter that comes with
    Redraft. adapter: its path below this folder."""

    nbytes: int
    sha256: str
    adapter: str

    @property
    def adapter_file(self) -> Path:
        """The adapter's file."""
        return Path(__file__).parent / self.adapter


@dataclass(frozen=True, slots=True)
class EditFigure:
    """A published figure of a model's edits by instruction. percent: share of the test's cases that
    the published weights solved; test: its name; source: an address."""

    percent: float
    test: str
    source: str


@dataclass(frozen=True, slots=True)
class Part:
    """A file that is fetched. path: in its repository or package; nbytes: 0 where only the hub
    knows."""

    path: str
    nbytes: int
    sha256: str

    @property
    def file(self) -> str:
        """Its name."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModel(ModelCard):
    """A model that can be fetched: its card, as the manifest has it, and how it is fetched. file:
    its name on this machine, of several the first; sha256: of the file; origin: where it lies;
    base: None where it is fetched as it is; split: all files where there are several; edits: the
    ready-made instructions that it carries out, empty where it is a model for any; edit_figure:
    how well it edits, where that is published."""

    file: str
    sha256: str
    origin: HubSource | PackageSource
    base: Base | None = None
    split: tuple[Part, ...] = ()
    edits: tuple[str, ...] = ()
    edit_figure: EditFigure | None = None

    @property
    def source(self) -> str:
        """The address that it is fetched from, in words."""
        return self.origin.shown

    @property
    def checked(self) -> bool:
        """True if size, licence and hash of the download are known."""
        sized = self.nbytes > 0 or isinstance(self.origin, HubSource)
        complete = sized and bool(self.licence) and _SHA256.fullmatch(self.sha256)
        return bool(complete) and self.origin.checked

    @property
    def limits_use(self) -> bool:
        """True if the user must agree to the licence: it forbids some uses, or is unknown."""
        return bool(self.terms) or not self.has_open_licence

    @property
    def parts(self) -> tuple[Part, ...]:
        """The files to fetch."""
        if self.split:
            return self.split
        made_of = self.base or self
        path = self.origin.path if isinstance(self.origin, HubSource) else self.origin.member
        return (Part(path, made_of.nbytes, made_of.sha256),)

    @property
    def fetched_bytes(self) -> int:
        """Of all parts."""
        return sum(piece.nbytes for piece in self.parts)


def read_manifest(file: Path = MANIFEST) -> list[OfferedModel]:
    """Return the models that are offered: those that were checked. Raises RedraftError."""
    try:
        document = json.loads(file.read_text("utf-8"))
        if document["version"] != VERSION:
            raise RedraftError(
                f"{file} is of version {document['version']}, and {VERSION} is known here; "
                "install a newer Redraft"
            )
        models = [_model(entry) for entry in document["models"]]
    except OSError as error:
        raise RedraftError(
            f"{file} cannot be read ({error.strerror}); give another with --manifest"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RedraftError(f"{file} is not a list of models ({error!r}); correct it") from error
    return [model for model in models if model.checked]


@cache
def edits_of(file: str) -> frozenset[str]:
    """Return the ready-made instructions that the model in a file of this name carries out, as its
    card says; empty where it takes any, or is not one of ours."""
    return frozenset(
        edit for model in read_manifest() if model.file == file for edit in model.edits
    )


def find_offered(models: list[OfferedModel], name: str) -> OfferedModel:
    """Return the model of a name, or the only one whose name holds it. Raises RedraftError."""
    low = name.lower()
    exact = [model for model in models if low in map(str.lower, model.names)]
    similar = [model for model in models if low in model.name.lower()]
    matching = exact or similar
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(model.name for model in matching or models)
    raise RedraftError(
        f"{name} is not one of those that can be fetched; give one of {names}, or any GGUF file "
        "of Hugging Face as OWNER/NAME:FILE"
    )


def _model(entry: dict[str, Any]) -> OfferedModel:
    name = str(entry["file"])
    if Path(name).name != name or not name.endswith(".gguf"):
        raise ValueError(f"{name} is not the name of a GGUF file")
    base, edits = entry.get("base"), entry.get("edit_figure")
    return OfferedModel(
        name=str(entry["name"]),
        file=name,
        nbytes=int(entry.get("bytes") or 0),
        sha256=str(entry.get("sha256") or ""),
        licence=str(entry.get("licence") or ""),
        origin=_origin(entry),
        base=base and Base(int(base["bytes"]), str(base["sha256"]), str(base["adapter"])),
        family=str(entry.get("family") or ""),
        parameters=int(entry.get("parameters") or 0),
        bits=float(entry.get("bits") or 0),
        context_tokens=int(entry.get("context_tokens") or 0),
        kv_bytes=int(entry.get("kv_bytes") or 0),
        does=tuple(map(str, entry.get("does") or ())),
        also=tuple(map(str, entry.get("names") or ())),
        purpose=str(entry.get("purpose") or ""),
        terms=str(entry.get("terms") or ""),
        edits=tuple(map(str, entry.get("edits") or ())),
        edit_figure=edits
        and EditFigure(float(edits["percent"]), str(edits["test"]), str(edits["source"])),
    )


def _origin(entry: dict[str, Any]) -> HubSource | PackageSource:
    if package := entry.get("package"):
        return PackageSource(
            str(package["requirement"]), str(package.get("sha256") or ""), str(package["member"])
        )
    path = str(entry.get("path") or entry["file"])
    return HubSource(str(entry["repository"]), str(entry.get("revision") or ""), path)
