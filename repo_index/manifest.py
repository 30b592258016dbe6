"""The manifest: which segment files make up a store, and which of their files are out of date."""

from __future__ import annotations

import contextlib
import json
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from repo_index.errors import DamagedStore
from repo_index.file_layer import FileLayer

FORMAT = 3
NAME = "manifest"


@dataclass(frozen=True)
class SegmentEntry:
    """A segment file: its size and CRC-32, and the indices of its dead files."""

    name: str
    size: int
    crc: int
    dead: tuple[int, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """One state of a store. A store is what its manifest says; other files in it are leftovers."""

    tokenizer_hash: str
    workspace: str = ""
    """The folder that is indexed, for whoever looks at the store; empty for common code."""
    generation: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    touched: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Newer modification and change times of files whose content is as it was indexed."""
    complete: bool = False
    """Whether everything was indexed once; a common datastore resumes where it is not."""

    def write(self, layer: FileLayer, folder: Path) -> None:
        """Put this state in place of the last one, at once. Raises OSError."""
        body = json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=True).encode()
        layer.replace_with(folder / NAME, [b"%08x\n" % zlib.crc32(body), body])
        # In place already: a failure only means that a loss of power may bring the last one back.
        with contextlib.suppress(OSError):
            layer.sync_folder(folder)

    @classmethod
    def read(cls, folder: Path, tokenizer_hash: str) -> Manifest:
        """Return the state of a store. Raises DamagedStore when there is none that can be used."""
        path = folder / NAME
        try:
            checksum, _, body = path.read_bytes().partition(b"\n")
            if int(checksum, 16) != zlib.crc32(body):
                raise DamagedStore(f"{path} is damaged; the index is built again")
            fields = json.loads(body)
            if fields.pop("format") != FORMAT:
                raise DamagedStore(f"{path} is of another version; the index is built again")
            if fields["tokenizer_hash"] != tokenizer_hash:
                raise DamagedStore(f"{path} is of another tokenizer; the index is built again")
            fields["segments"] = tuple(
                SegmentEntry(**dict(entry, dead=tuple(entry["dead"])))
                for entry in fields["segments"]
            )
            fields["touched"] = {path: (a, b) for path, (a, b) in fields["touched"].items()}
            return cls(**fields)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedStore(f"{path} cannot be used ({error}); the index is built") from error
