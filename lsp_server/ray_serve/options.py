"""What a deployment is made of: ``args`` of an application in a Serve config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lsp_server.engine.key import EngineKey
from lsp_server.errors import DeployError


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """The model, its replicas, and what each of them takes of a machine."""

    model: str = ""
    """Path of a GGUF file or a folder, the same on every node."""
    dtype: str = "auto"
    device: str = "auto"
    backend: str = "auto"
    kv_type: str = "f16"
    gpu_layers: int | None = None
    """Layers that llama.cpp computes on a GPU; none: as many as have room there."""
    flash_attention: str = "auto"
    threads: int = 0
    """Threads of a forward; 0: as many as are fastest on the node."""
    replicas: int = 2
    ingresses: int = 1
    """Processes that check keys and speak HTTP."""
    cpus: float = 1.0
    """Cores that Ray sets aside for a replica."""
    gpus: float = 0.0
    """GPUs that Ray sets aside for a replica."""
    ingress_cpus: float = 0.5
    """Cores that Ray sets aside for an ingress."""
    keys: str = ""
    """File of the keys, where an ingress may run."""
    names: str = ""
    """Host names that clients use for the server, separated by commas."""
    data: str = ""
    """Folder that all nodes share, for repositories and their indexes; empty: none are taken, and
    drafts come from prompts."""
    requests_per_minute: float = 3000.0
    """Of one key, on average, at one ingress."""
    concurrent: int = 32
    """Requests of one key at once, at one ingress."""
    most_requests: int = 64
    """Requests that a replica holds at once; its scheduler runs the most urgent."""
    surge_percent: int = 0
    """How many more replicas there may be while an update runs, in percent. 0: an old one ends
    before a new one starts. More needs cores or GPUs that are free."""
    drain_seconds: float = 60.0
    """How long a replica that is replaced may work on the requests it has."""

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> DeployOptions:
        """Raises DeployError for an unknown option, or one of the wrong type or size."""
        known: dict[str, Any] = {field.name: field.default for field in fields(cls)}
        for name, value in args.items():
            if name not in known:
                raise DeployError(f"unknown option {name!r}; there are {', '.join(known)}")
            if value is None and known[name] is None:
                continue
            wanted = int if known[name] is None else type(known[name])
            taken = (int, float) if wanted is float else (wanted,)
            if not isinstance(value, taken) or isinstance(value, bool):
                raise DeployError(f"{name} is {value!r}; give a value of type {wanted.__name__}")
            if wanted is not str and value < (1 if name in AT_LEAST_ONE else 0):
                raise DeployError(f"{name} is {value!r}, which is too small")
        options = cls(**args)
        if options.data and options.ingresses > 1:
            raise DeployError("data needs ingresses = 1: one process knows the open documents")
        return options

    @property
    def host_names(self) -> list[str]:
        """The names of the server, in lower case."""
        return [name.strip().lower() for name in self.names.split(",") if name.strip()]

    @property
    def engine(self) -> EngineKey:
        """What every replica loads."""
        return EngineKey(
            self.model,
            self.dtype,
            self.device,
            self.threads,
            common=True,
            backend=self.backend,
            kv_type=self.kv_type,
            gpu_layers=self.gpu_layers,
            flash_attention=self.flash_attention,
        )


AT_LEAST_ONE = ("replicas", "ingresses", "most_requests", "requests_per_minute", "concurrent")
