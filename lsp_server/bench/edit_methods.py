"""The methods of the edit bench: our drafter, EfficientEdit and its ablations, and peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lsp_server.bench.edit_cases import end_of
from lsp_server.bench.methods import DRAFTERS, PLAIN, MakeDrafter, MethodSetup

if TYPE_CHECKING:
    from accel.engine import Engine

Relaxed = Literal["entropy", "top-k", "direct"]

FROM_COMPLETION = (PLAIN, "hf-prompt-lookup", "suffix-decoding", "suffix-decoding-path")


@dataclass(frozen=True, slots=True)
class EditMethod:
    """How a method drafts and verifies.

    ``relaxed`` and ``top_k``: the lossy verification of a draft model's tokens; none by default.
    """

    make: MakeDrafter
    plan: bool = False
    relaxed: Relaxed | None = None
    top_k: int = 0


def _reuse(setup: MethodSetup) -> MakeDrafter:
    from accel.sources.reuse import ReuseDrafter, warm_up

    warm_up()
    tokenizer, end = setup.tokenizer, end_of(setup.tokenizer)
    return lambda: ReuseDrafter(tokenizer, end)


def _efficientedit(draft: Engine | None, *, reuse: bool = True, drop_bonus: bool = False) -> (
    Callable[[MethodSetup], MakeDrafter]
):  # fmt: skip
    def build(setup: MethodSetup) -> MakeDrafter:
        from accel.sources.draft_model import DraftModelDrafter
        from accel.sources.efficientedit import EfficientEditDrafter

        sha256 = setup.tokenizer.sha256

        def make() -> EfficientEditDrafter:
            model = DraftModelDrafter(draft, sha256) if draft is not None else None
            return EfficientEditDrafter(model, reuse=reuse, drop_bonus=drop_bonus)

        return make

    return build


def _fastfixer(setup: MethodSetup) -> MakeDrafter:
    from accel.peers.fastfixer import FastFixerDrafter

    return FastFixerDrafter


def edit_methods(draft: Engine | None = None) -> dict[str, Callable[[MethodSetup], EditMethod]]:
    """Methods by name; those of EfficientEdit use the ``draft`` model where there is one.

    ``draft-model`` is Table II's row without *Reuse*, the ``efficientedit-…`` names are the
    verifiers of Table III and the thresholds of figure 5; which draft model it is (base, tuned on
    all tokens, tuned on new lines) is a matter of the folder given.
    """
    from accel.errors import PeerUnavailable

    def plainly(build: Callable[[MethodSetup], MakeDrafter]) -> Callable[[MethodSetup], EditMethod]:
        return lambda setup: EditMethod(build(setup))

    def lossily(relaxed: Relaxed, top_k: int) -> Callable[[MethodSetup], EditMethod]:
        def build(setup: MethodSetup) -> EditMethod:
            if draft is None:
                raise PeerUnavailable("lossy verification needs a draft model; give --draft-model")
            return EditMethod(_efficientedit(draft)(setup), relaxed=relaxed, top_k=top_k)

        return build

    def without_reuse(setup: MethodSetup) -> EditMethod:
        if draft is None:
            raise PeerUnavailable("draft-model needs a smaller model; give --draft-model DIR")
        return EditMethod(_efficientedit(draft, reuse=False)(setup))

    return {
        **{name: plainly(DRAFTERS[name]) for name in FROM_COMPLETION},
        "fastfixer": plainly(_fastfixer),
        "efficientedit": plainly(_efficientedit(draft)),
        "efficientedit-official": plainly(_efficientedit(draft, drop_bonus=True)),
        "draft-model": without_reuse,
        "efficientedit-direct": lossily("direct", 2),
        "efficientedit-top-3": lossily("top-k", 3),
        "efficientedit-top-5": lossily("top-k", 5),
        "efficientedit-entropy-3": lossily("entropy", 3),
        "efficientedit-entropy-5": lossily("entropy", 5),
        "efficientedit-entropy-7": lossily("entropy", 7),
        "redraft": lambda setup: EditMethod(_reuse(setup), plan=True),
    }
