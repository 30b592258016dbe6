"""The worker of llama.cpp with calls that only tests make.

``--free-rejected-rows``: places of rejected rows are free at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from accel.models.llama_cpp import worker
from accel.models.llama_cpp.tree_context import LEAVES, TreeContext

TESTED = sys.executable, str(Path(__file__)), "--"
FREES_REJECTED = *TESTED, "--free-rejected-rows"


class TestedWorker(worker.Worker):
    """See the module."""

    def ends(self, number: int) -> list[int]:
        """The last position of every leaf of a line of text."""
        context = self._contexts[number]
        last = self._library.llama_memory_seq_pos_max
        return [last(context._memory, leaf) for leaf in range(LEAVES)]

    def held(self) -> int:
        """Lines of text that are held."""
        return len(self._contexts)

    def abort(self, number: int) -> None:
        """Break a rule of the library, which ends its process by an assertion."""
        memory = self._contexts[number]._memory
        self._library.llama_memory_seq_cp(memory, 0, 1 << 20, -1, -1)


def main() -> None:
    worker.Worker = TestedWorker  # type: ignore[misc]
    worker.CALLS |= {"ends", "held", "abort"}
    if "--free-rejected-rows" in sys.argv:
        TreeContext._reject = TreeContext._remove  # type: ignore[assignment, method-assign]
    worker.main()


if __name__ == "__main__":
    main()
