"""The card of a model: what users are told of one, be it on this machine or to be fetched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from accel.files.memory_fit import fits_in_memory

OPEN_LICENCES = frozenset({"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "mpl-2.0", "isc"})
"""A model with one of these comes before one whose licence forbids some uses or is not known."""


@dataclass(frozen=True, slots=True)
class Speed:
    """first_text_s: seconds from a prompt of ``speed.PROMPT_TOKENS`` to the first token;
    tokens_per_s: of plain decoding; measured: whether both were, and not estimated."""

    first_text_s: float
    tokens_per_s: float
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """A model. also: its further names; paths: all its paths, none where it is to be fetched;
    store: the first that has it; bits: of a weight, on average; nbytes: of all files, 0 where
    unknown; does: of ``fim``, ``left``, ``edit``, ``next-edit``, ``apply``; kv_bytes: of one token,
    in 16 bits; terms: what its licence
    does not allow; purpose: what it is good for; problem: why it cannot be opened; passed_over:
    what of it is not used; speed: None where unknown."""

    name: str = ""
    also: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    store: str = ""
    family: str = ""
    parameters: int = 0
    bits: float = 0.0
    nbytes: int = 0
    context_tokens: int = 0
    licence: str = ""
    does: tuple[str, ...] = ()
    kv_bytes: int = 0
    terms: str = ""
    purpose: str = ""
    problem: str = ""
    passed_over: str = ""
    speed: Speed | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All its names: by each of them it can be chosen."""
        return self.name, *self.also

    @property
    def path(self) -> str:
        """Its first path, empty where it is to be fetched."""
        return str(self.paths[0]) if self.paths else ""

    @property
    def source(self) -> str:
        """The file's location, or the address that it is fetched from, in words."""
        return self.store

    @property
    def has_open_licence(self) -> bool:
        """True if the licence forbids no use."""
        return self.licence.lower() in OPEN_LICENCES

    def fits(self, free: int | None = None, beside: int = 0) -> bool:
        """Return True if ``free`` bytes of memory (by default what is free now) hold the model and
        ``beside`` bytes of another one. Unknown file sizes are estimated by the parameters."""
        nbytes = self.nbytes or round(self.parameters * self.bits / 8)
        return fits_in_memory(nbytes + beside, self.kv_bytes, free)
