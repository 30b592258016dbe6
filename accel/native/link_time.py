"""Link-time optimisation: a function stays as it was written until the address of some code of its
library is needed, which saves half of the time to compile."""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.registry import cpu_target


class _Library(JITCodeLibrary):
    """Functions of one module of LLVM, and the libraries that they call."""

    _has_machine_code = False

    def _optimize_functions(self, ll_module: Any) -> None:
        # What is done to the whole does the same, and needs a fraction of the time.
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def _finalize_final_module(self) -> None:
        # Code out of a cache comes here by itself.
        self._has_machine_code = True
        super()._finalize_final_module()

    def _make_machine_code(self) -> None:
        self._linking_libraries = self._all_called()
        self._finalized = False
        super().finalize()

    def _all_called(self) -> list[Any]:
        """Return the libraries that are called, and those that these call without having linked
        them in. Each comes after all its callers: the linker leaves out code without a caller
        before it."""
        libraries: dict[Any, None] = {}

        def visit(library: Any) -> None:
            if library not in libraries:
                if not getattr(library, "_has_machine_code", True):
                    for called in reversed(library._linking_libraries):
                        visit(called)
                libraries[library] = None

        for called in reversed(self._linking_libraries):
            visit(called)
        return list(reversed(libraries))

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        if not self._has_machine_code:
            if all(function.name != name for function in self.get_defined_functions()):
                return 0
            self._make_machine_code()
        address: int = super().get_pointer_to_function(name)
        return address

    def serialize_using_object_code(self) -> Any:
        if not self._has_machine_code:
            self._make_machine_code()
        return super().serialize_using_object_code()


class _Codegen(JITCPUCodegen):
    _library_class = _Library

    def set_env(self, env_name: str, env: Any) -> None:
        if self._engine.is_symbol_defined(env_name):
            super().set_env(env_name, env)


def optimise_at_link_time() -> None:
    """Have this process compile so from now on."""
    cpu_target.target_context.codegen().__class__ = _Codegen
