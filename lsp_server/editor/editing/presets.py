"""Ready-made instructions, offered as code actions where they fit the code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from lsp_server.editor.editing.selected_python import SelectedPython


@dataclass(frozen=True, slots=True)
class Preset:
    """An instruction, which is its title, too; ``languages`` empty for all; ``fits``: whether
    there is something to do for it in a piece of Python."""

    instruction: str
    languages: tuple[str, ...] = ()
    title: str = ""
    fits: Callable[[SelectedPython], bool] = lambda _: True


_PYTHON = ("python",)
PRESETS: tuple[Preset, ...] = (
    Preset("add a docstring", _PYTHON, fits=lambda code: code.lacks_docstring),
    Preset("add type hints", _PYTHON, fits=lambda code: code.lacks_hints),
    Preset("simplify the code without changing what it does", title="simplify"),
    Preset("remove comments", _PYTHON, fits=lambda code: code.has_comment),
    Preset("remove the docstring", _PYTHON, fits=lambda code: code.has_docstring),
    Preset("remove type hints", _PYTHON, fits=lambda code: code.has_hints),
    Preset("use f-strings", _PYTHON, fits=lambda code: code.has_formatting),
    Preset("use double quotes", _PYTHON, fits=lambda code: code.has_single_quotes),
)
LONGEST_TITLE = 60


def presets_for(
    language: str, own: Sequence[str], done: Collection[str] = (), code: str = ""
) -> list[Preset]:
    """Return the presets to offer in ``language``: the user's ``own`` instructions, then ours that
    fit the selected ``code`` and that the model handles (``done``; empty: all)."""
    mine = [
        Preset(text.strip(), title=text.strip()[:LONGEST_TITLE]) for text in own if text.strip()
    ]
    selected = SelectedPython.of(code) if language == "python" else None
    ours = (preset for preset in PRESETS if not preset.languages or language in preset.languages)
    fitting = (preset for preset in ours if selected is None or preset.fits(selected))
    return [*mine, *(preset for preset in fitting if not done or preset.instruction in done)]
