"""Where compiled code of the tests lies. Run as a module it compiles, on every core, what most of
them call."""

from __future__ import annotations

import os
from pathlib import Path

from accel.native.levels import use_level

ROOT = Path(__file__).resolve().parents[1]


def use_code_of_tests() -> None:
    """Have this process, and those that it starts, use what an earlier run compiled. Numba must not
    be loaded yet."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / "build" / "compiled"))
    use_level()


def main() -> None:
    """Compile it."""
    use_code_of_tests()
    from lsp_server.engine.compiling import compile_at_once
    from lsp_server.engine.service import EngineService
    from lsp_server.engine.warming import parts_for_any_model
    from lsp_server.shared.contract.options import EngineOptions

    for tokens in (1 << 15, 1 << 17):
        compile_at_once(parts_for_any_model(tokens), print)
        # Nothing is left, and that is recorded.
        parts_for_any_model(tokens)
    service = EngineService(EngineOptions(path=str(ROOT / "tests" / "data" / "small_model")))
    service.load(print)
    service.warm_up()
    service.close()


if __name__ == "__main__":
    main()
