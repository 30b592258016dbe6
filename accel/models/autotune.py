"""Which number format and how many threads are fastest for a model on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from accel.files.model_options import KvType
from accel.models.base import Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.measuring import Threaded, behind_long_texts, estimate, measure, share
from accel.models.costs.profile_store import ProfileStore
from operating_system.machine import cores


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What belongs to the engine and never to a step."""

    dtype: str
    """``fp32``, ``bf16`` or ``int8``."""
    threads: int
    may_share: bool = False
    """Whether more threads may take part in a forward where the model has such a one."""
    kv_type: KvType = "f16"
    """The format of keys and values, where the model has it."""


def profile_key(name: str, kv_type: KvType) -> str:
    """The name of a profile's value for a model with such keys and values."""
    return name if kv_type == "f16" else f"{name}/kv {kv_type}"


def can_be_stored(threads: int) -> bool:
    """Whether a measurement is worth storing: one thread is timed by its own clock, several only
    measure right while nothing else runs."""
    try:
        return threads == 1 or os.getloadavg()[0] < (os.cpu_count() or 1) + 0.5
    except (AttributeError, OSError):
        return True


def profile(model: Model, settings: RunSettings, store: ProfileStore) -> ForwardCosts:
    """t(T) of an opened model, measured at its first start and stored, and again on a quiet machine
    where that one was busy. Sets how many threads pay, and from how many rows on."""
    measuring = Profile(model, settings, store)
    return measuring.costs if measuring.is_known else measuring.measure()


class Profile:
    """t(T) of an opened model, which may be measured after its first answers."""

    def __init__(self, model: Model, settings: RunSettings, store: ProfileStore) -> None:
        self._model, self._settings, self._store = model, settings, store
        self._shares = settings.may_share and isinstance(model, Threaded) and model.can_share
        if isinstance(model, Threaded) and settings.threads > 1:
            model.most_threads = min(model.most_threads, settings.threads)
        name = f"forwards/{settings.dtype}/{settings.threads}" + ("/shared" * self._shares)
        self._key = profile_key(name, settings.kv_type)
        self._may_store = can_be_stored(settings.threads)
        self._known = ForwardCosts.stored(store.get(self._key))
        self.is_known = self._known is not None and not self._known.was_busy
        """Whether nothing is left to measure."""
        self._measured: ForwardCosts | None = None
        self._stages: list[Callable[[ForwardCosts | None], ForwardCosts]] = []
        self._is_quiet = True

    @property
    def costs(self) -> ForwardCosts:
        """As they are known so far, or estimated. Sets how many threads share forwards."""
        costs = self._known or estimate(self._model)
        _share_as_measured(self._model, costs)
        return costs

    @property
    def then(self) -> Later | None:
        """What measures after it: itself, where the machine was busy."""
        return None if self.is_known else self

    def measure(self) -> ForwardCosts:
        """The costs, measured now; those of a busy machine where it is busy again."""
        return self.go_on(lambda: False) or self.costs

    def go_on(self, interrupted: Callable[[], bool]) -> ForwardCosts | None:
        """The costs once they are measured and stored, by which requests that begin then are
        planned; None where something came before, or a machine is as busy as it was. What was
        measured until then stays."""
        if not self._stages:
            # What is measured itself makes the machine busy.
            self._is_quiet = _is_quiet()
            if self._known is not None and not self._is_quiet:
                return None
            self._stages = [self._measure, self._share, self._behind_long_texts]
        while self._stages:
            try:
                with _unless(interrupted, self._model):
                    self._measured = self._stages[0](self._measured)
            except _Interrupted:
                return None
            del self._stages[0]
        assert self._measured is not None
        costs = self._known = replace(self._measured, was_busy=not self._is_quiet)
        self.is_known = not costs.was_busy
        if self.is_known or self._may_store:
            self._store.put(self._key, costs.to_json())
        _share_as_measured(self._model, costs)
        return costs

    def _measure(self, _costs: ForwardCosts | None) -> ForwardCosts:
        return measure(self._model, 0.8)

    def _share(self, costs: ForwardCosts | None) -> ForwardCosts:
        assert costs is not None
        return share(self._model, costs, 1.5) if self._shares else costs

    def _behind_long_texts(self, costs: ForwardCosts | None) -> ForwardCosts:
        assert costs is not None
        _share_as_measured(self._model, costs)
        return behind_long_texts(self._model, costs)


class Later(Protocol):
    """What measures an opened model after its first answers."""

    @property
    def then(self) -> Later | None:
        """What measures after it."""

    def go_on(self, interrupted: Callable[[], bool]) -> ForwardCosts | None:
        """The costs once they are known; None where something came before, or none are found."""


class _Interrupted(Exception):
    """Something came while a model was measured."""


@contextmanager
def _unless(interrupted: Callable[[], bool], model: Model) -> Iterator[None]:
    """Have the model's forwards raise ``_Interrupted`` once something came."""
    forward = model.forward

    def forward_unless(*arguments: Any) -> Any:
        if interrupted():
            raise _Interrupted
        return forward(*arguments)

    model.forward = forward_unless  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del vars(model)["forward"]


def _share_as_measured(model: Model, costs: ForwardCosts) -> None:
    if isinstance(model, Threaded):
        model.shared_from, model.threads = costs.shared_from, costs.threads


def may_use_more(threads: int | None) -> bool:
    """Whether a forward may use more threads than a user set (None: as many as are fast)."""
    return threads != 1 and cores() > 1


def _is_quiet() -> bool:
    try:
        return os.getloadavg()[0] < (os.cpu_count() or 1) - 0.5
    except (AttributeError, OSError):
        return True
