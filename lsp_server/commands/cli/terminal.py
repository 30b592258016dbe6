"""Output to a terminal, without control characters from other people's texts."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lsp_server.shared.printable import printable

if TYPE_CHECKING:
    from rich.console import Console


def write_result(text: str) -> None:
    """A text on standard output: as it is for a program or a file, and printable for a person."""
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def terminal(**options: Any) -> Console:
    """Return a console of rich that shows every text as it is: no markup and no names of pictures
    in it, and what would steer the terminal visibly. It takes a moment to be imported."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class _Terminal(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield (
                    segment if segment.control else Segment(printable(segment.text), segment.style)
                )

    return _Terminal(markup=False, emoji=False, **options)
