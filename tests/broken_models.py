"""Models that cannot be loaded, one of each kind, and what has to be said about each."""

from __future__ import annotations

from breaking import Broken
from broken_files import FILES
from broken_paths import PATHS

KINDS: list[Broken] = [*PATHS, *FILES]
