"""The methods of the edit bench: our drafter, EfficientEdit and its ablations, and peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.benchmarks.edits.cases import end_of
from tests.benchmarks.methods import DRAFTERS, PLAIN, MakeDrafter, MethodSetup

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.verification.verify_tree import Relaxed

FROM_COMPLETION = (
    *(PLAIN, "hf-prompt-lookup", "rest", "suffix-decoding", "suffix-decoding-path", "fastcoder"),
    *("self-speculative", "sdsat"),
)


@dataclass(frozen=True, slots=True)
class EditMethod:
    """How a method drafts and verifies.

    ``relaxed``: the lossy verification of a draft model's tokens; none by default.
    """

    make: MakeDrafter
    plan: bool = False
    relaxed: Relaxed | None = None


def _reuse(setup: MethodSetup) -> MakeDrafter:
    from accel.drafting.copy.drafter import CopyDrafter, warm_up

    warm_up()
    tokenizer, end = setup.tokenizer, end_of(setup.tokenizer)
    return lambda: CopyDrafter(tokenizer, end)


def efficientedit(draft: Engine | None, *, reuse: bool = True, drop_bonus: bool = False) -> (
    Callable[[MethodSetup], MakeDrafter]
):  # fmt: skip
    """EfficientEdit's drafter; without ``draft`` it generates plainly where it does not reuse."""

    def build(setup: MethodSetup) -> MakeDrafter:
        from accel.decoding.draft_model import DraftModelDrafter
        from tests.benchmarks.published.efficientedit import EfficientEditDrafter

        sha256 = setup.tokenizer.sha256

        def make() -> EfficientEditDrafter:
            model = DraftModelDrafter(draft, sha256) if draft is not None else None
            return EfficientEditDrafter(model, reuse=reuse, drop_bonus=drop_bonus)

        return make

    return build


def _fastfixer(setup: MethodSetup) -> MakeDrafter:
    from tests.benchmarks.peers.fastfixer import FastFixerDrafter

    return FastFixerDrafter


def edit_methods(draft: Engine | None = None) -> dict[str, Callable[[MethodSetup], EditMethod]]:
    """Methods by name. ``efficientedit`` generates by the ``draft`` model where there is one,
    ``efficientedit-no-draft`` never does, ``draft-model`` is plain speculative decoding by it."""
    from tests.benchmarks.peers.errors import PeerUnavailable

    def plainly(build: Callable[[MethodSetup], MakeDrafter]) -> Callable[[MethodSetup], EditMethod]:
        return lambda setup: EditMethod(build(setup))

    def without_reuse(setup: MethodSetup) -> EditMethod:
        if draft is None:
            raise PeerUnavailable("draft-model needs a smaller model; give --draft-model DIR")
        return EditMethod(efficientedit(draft, reuse=False)(setup))

    return {
        **{name: plainly(DRAFTERS[name]) for name in FROM_COMPLETION},
        "fastfixer": plainly(_fastfixer),
        "efficientedit": plainly(efficientedit(draft)),
        "efficientedit-no-draft": plainly(efficientedit(None)),
        "efficientedit-official": plainly(efficientedit(draft, drop_bonus=True)),
        "draft-model": without_reuse,
        "redraft": lambda setup: EditMethod(_reuse(setup), plan=True),
    }
