"""REST's own retriever (its package ``draftretriever``), called as REST calls it.

Standard library and Python 3.9 only, and no import of ours: the package's published wheel is for
CPython 3.9, so this file also runs there as a process of its own, told what to do by lines of JSON
on standard input and answering on standard output.
"""

from __future__ import annotations

import array
import json
import sys
import time
from typing import Any

LONGEST = 16
SHORTEST = 2
CHOICES = 64


def import_package() -> Any:
    """The package, or ImportError when what bears its name is not REST's.

    Another project publishes a package of the same name, whose writer takes ``file_path``.
    """
    import draftretriever

    if "index_file_path" not in draftretriever.Writer.__init__.__code__.co_varnames:
        raise ImportError("the installed draftretriever is ADED's, not REST's")
    return draftretriever


class Retriever:
    """Writes index files and drafts from one of them."""

    def __init__(self) -> None:
        self._package = import_package()
        self._reader: Any = None

    def write(self, index: str, tokens: str, vocabulary: int) -> None:
        """Write the index file of the int32 token ids in the file ``tokens``."""
        ids: array.array[int] = array.array("i")
        with open(tokens, "rb") as file:
            ids.frombytes(file.read())
        writer = self._package.Writer(
            index_file_path=index, max_chunk_len=max(len(ids), 1), vocab_size=vocabulary
        )
        writer.add_entry(ids.tolist())
        writer.finalize()

    def open(self, index: str) -> None:
        """Draft from this index file from now on; several files in one are searched together."""
        self._reader = self._package.Reader(index_file_path=index)

    def draft(self, context: list[int], choices: int) -> list[list[int]]:
        """Paths of the draft tree: the longest span of 16 to 2 tokens that occurs decides.

        REST guesses a fixed token where nothing occurs; that guess is left out. Where the package
        gives up because its cut left too many nodes, so do we.
        """
        for span in range(min(LONGEST, len(context)), SHORTEST - 1, -1):
            try:
                paths = self._reader.search(context[-span:], choices=choices)[0]
            except ValueError:
                return []
            if paths:
                return [[token for token in path if token != -2] for path in paths]
        return []

    def timed(self, contexts: list[list[int]], choices: int) -> list[float]:
        """Seconds that each draft takes, without what it takes to ask a process for it."""
        times = []
        for context in contexts:
            started = time.perf_counter()
            self.draft(context, choices)
            times.append(time.perf_counter() - started)
        return times

    def resident(self) -> int:
        """Resident memory of this process, in bytes."""
        with open("/proc/self/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmRSS"].split()[0]) << 10


def main() -> None:
    """Answer requests until standard input ends."""
    answer = sys.stdout
    try:
        retriever = Retriever()
    except ImportError as error:
        print(json.dumps({"error": str(error)}), file=answer, flush=True)
        return
    print(json.dumps({"ready": True}), file=answer, flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        result = getattr(retriever, name)(*arguments)
        print(json.dumps({"result": result}), file=answer, flush=True)


if __name__ == "__main__":
    main()
