"""The application of Ray Serve: an ingress that is ``redraft serve-http``, before replicas of the
engine. ``build`` is the ``import_path`` of ``deploy/ray.yaml``."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import RequestRouterConfig
from ray.serve.handle import DeploymentHandle
from starlette.types import ASGIApp

from lsp_server.engine.client import EngineClient
from lsp_server.team.http_server.application import app
from lsp_server.team.http_server.keys import Keys
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.ray_serve.connection import ReplicasConnection
from lsp_server.team.ray_serve.options import DeployOptions
from lsp_server.team.ray_serve.replica import EngineReplica
from lsp_server.team.ray_serve.session import SECRET_BYTES

ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
HEALTH_S = 5.0
"""How often Serve asks a replica whether it is well."""
DRAIN_LOOP_S = 0.5
"""How often a replica that is replaced looks whether its last request has ended."""
QUIET = {"enable_access_log": False}


class Ingress:
    """The process that checks keys and speaks HTTP."""

    def __init__(
        self, replicas: DeploymentHandle[Any], options: DeployOptions, secret: bytes
    ) -> None:
        """``secret``: key of the HMAC that sessions are named by."""
        self._options = options
        self._engine = EngineClient(
            options.engine,
            lambda: None,
            connect=lambda on_frame, on_death: ReplicasConnection(
                replicas, secret, on_frame, on_death
            ),
        )

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """Called by Serve for its replica. Raises BadKeysFile."""
        options = self._options
        return app(
            self._engine,
            Keys(Path(options.keys)),
            RequestLimits(options.requests_per_minute, options.concurrent),
            host_names=options.host_names,
        )


def engines(options: DeployOptions) -> Application:
    """Return the replicas of the engine. Sessions keep to a replica by consistent hashing."""
    deployment = serve.deployment(
        EngineReplica,
        name="Engine",
        num_replicas=options.replicas,
        ray_actor_options={"num_cpus": options.cpus, "num_gpus": options.gpus},
        max_ongoing_requests=options.most_requests,
        graceful_shutdown_wait_loop_s=DRAIN_LOOP_S,
        graceful_shutdown_timeout_s=options.drain_seconds,
        health_check_period_s=HEALTH_S,
        max_surge_percent=options.surge_percent,
        request_router_config=RequestRouterConfig(request_router_class=ROUTER),
        logging_config=QUIET,
    )
    return deployment.bind(options.engine)


def application(options: DeployOptions) -> Application:
    """Return the whole server."""
    deployment = serve.deployment(
        serve.ingress()(Ingress),
        name="Ingress",
        num_replicas=options.ingresses,
        ray_actor_options={"num_cpus": options.ingress_cpus},
        max_ongoing_requests=options.most_requests * options.replicas,
        graceful_shutdown_wait_loop_s=DRAIN_LOOP_S,
        graceful_shutdown_timeout_s=options.drain_seconds,
        health_check_period_s=HEALTH_S,
        # It is small, and nobody is answered while there is none.
        max_surge_percent=100,
        logging_config=QUIET,
    )
    # Made anew with every deployment: then the replicas are new, too.
    secret = secrets.token_bytes(SECRET_BYTES)
    return deployment.bind(engines(options), options, secret)


def build(args: Mapping[str, Any]) -> Application:
    """Return the server by the ``args`` of a Serve config file. Raises DeployError."""
    return application(DeployOptions.of(args))
