"""The options of a deployment: ``args`` of an application in a Serve config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from accel.files.model_options import ModelOptions, option, part_of
from lsp_server.shared.contract.codec import Unreadable, read
from lsp_server.shared.contract.options import SERVER_CACHES, EngineOptions
from lsp_server.shared.errors import DeployError


@dataclass(frozen=True, slots=True)
class DeployOptions(ModelOptions):
    """The model, whose ``path`` is the same on every node and is called ``model`` in a config file,
    its replicas, and what each of them takes of a machine."""

    replicas: int = option(2, "Engines.", low=1)
    ingresses: int = option(1, "Processes that check keys and speak HTTP.", low=1)
    cpus: float = option(1.0, "Cores that Ray sets aside for a replica.", low=0)
    gpus: float = option(0.0, "GPUs that Ray sets aside for a replica.", low=0)
    ingress_cpus: float = option(0.5, "Cores that Ray sets aside for an ingress.", low=0)
    keys: str = option("", "File of the keys, where an ingress may run.")
    names: str = option("", "Host names that clients use for the server, separated by commas.")
    requests_per_minute: float = option(3000.0, "Of one key, on average, at one ingress.", low=1)
    concurrent: int = option(32, "Requests of one key at once, at one ingress.", low=1)
    most_requests: int = option(
        64, "Requests that a replica holds at once; its scheduler runs the most urgent.", low=1
    )
    surge_percent: int = option(
        0,
        "How many more replicas there may be while an update runs, in percent. 0: an old one ends "
        "before a new one starts. More needs cores or GPUs that are free.",
        low=0,
    )
    drain_seconds: float = option(
        60.0, "How long a replica that is replaced may work on the requests it has.", low=0
    )

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> DeployOptions:
        """Raise DeployError for an unknown option, or one of the wrong type or size."""
        try:
            return read(cls, {"path" if name == "model" else name: args[name] for name in args})
        except Unreadable as error:
            raise DeployError(f"options of the deployment: {error}") from None

    @property
    def host_names(self) -> list[str]:
        """The names of the server, in lower case."""
        return [name.strip().lower() for name in self.names.split(",") if name.strip()]

    @property
    def engine(self) -> EngineOptions:
        """The options of every replica's engine."""
        return EngineOptions(**asdict(part_of(self, ModelOptions)), **SERVER_CACHES)
