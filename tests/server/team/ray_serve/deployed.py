"""A server on a cluster of this machine, and who may ask it."""

from __future__ import annotations

from typing import Any, NamedTuple

APPLICATION = "redraft"
OBJECT_STORE_BYTES = 200_000_000
KEY = "rd-key-of-the-first-team"
OTHER_KEY = "rd-key-of-the-other-team"


class Deployed(NamedTuple):
    """A server on a cluster."""

    url: str
    options: Any
    """Its DeployOptions."""

    @property
    def replicas(self) -> Any:
        """The handle of its replicas."""
        from ray import serve

        return serve.get_deployment_handle("Engine", APPLICATION)
