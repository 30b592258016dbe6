"""Started by ``python_process.python_command`` as ``python -I isolated_start.py FOLDERS MODULE …``:
runs a module as ``python -m`` does, with the installation's folders on the path.

It stands alone: the path that finds this package is made here.
"""

import importlib.machinery
import os
import runpy
import site
import sys
import types
from collections.abc import Sequence

NUMBA_SETTINGS = {"NUMBA_CACHE_DIR", "NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME"}
"""Those that stay: where compiled code lies, and for which processor it is compiled. Where they are
not set, ``accel.native`` sets them."""


def use(folders: list[str]) -> None:
    """Have the folders on the path, and in the environment for Python processes that others start
    for us, as Ray does. The user's site-packages are where ``site`` puts them."""
    beside = []
    for folder in filter(None, folders):
        if folder in sys.path:
            continue
        if folder == site.getusersitepackages():
            before = len(sys.path)
            site.addsitedir(folder)
            added, packages = sys.path[before:], set(site.getsitepackages())
            del sys.path[before:]
            position = next((n for n, entry in enumerate(sys.path) if entry in packages), before)
            sys.path[position:position] = added
        else:
            sys.path.append(folder)
            beside.append(folder)
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ.pop("PYTHONPATH", None)
    if beside:
        os.environ["PYTHONPATH"] = os.pathsep.join(beside)


def override_numba_settings() -> None:
    """Pass over what a user has Numba do with code of their own, as ``NUMBA_DISABLE_JIT``: by the
    environment, or by a file in the folder that the command is started in."""
    for name in os.environ.keys() - NUMBA_SETTINGS:
        if name.startswith("NUMBA_"):
            del os.environ[name]
    from accel.native.levels import use_level

    use_level()
    sys.meta_path.insert(0, _NumbaConfig())


class _NumbaConfig(importlib.machinery.PathFinder):
    def find_spec(  # type: ignore[override]
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "numba.core.config":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        read = spec.loader.exec_module

        def read_elsewhere(module: types.ModuleType) -> None:
            from accel.native.machine_code import use_cache

            use_cache()
            here = os.getcwd()
            os.chdir(os.path.dirname(module.__file__ or here))
            # For a file of settings that is passed over it would import all of a YAML parser.
            if not (has_yaml := "yaml" in sys.modules):
                sys.modules["yaml"] = None  # type: ignore[assignment]
            try:
                read(module)
            finally:
                os.chdir(here)
                if not has_yaml:
                    del sys.modules["yaml"]
            # It looks for a changed file whenever it compiles.
            module.__dict__["_config_fname"] = os.devnull

        spec.loader.exec_module = read_elsewhere  # type: ignore[method-assign]
        return spec


if __name__ == "__main__":
    use(sys.argv[1].split("\n"))
    override_numba_settings()
    module, sys.argv = sys.argv[2], [sys.argv[0], *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
