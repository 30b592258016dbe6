"""The application of Ray Serve: replicas of the engine, with the router that keeps sessions."""

from __future__ import annotations

from ray import serve
from ray.serve import Application
from ray.serve.config import RequestRouterConfig

from lsp_server.ray_serve.options import DeployOptions
from lsp_server.ray_serve.replica import EngineReplica

ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
HEALTH_S = 5.0
"""How often Serve asks a replica whether it is well."""


def engines(options: DeployOptions) -> Application:
    """The replicas of the engine. Sessions keep to a replica by consistent hashing."""
    deployment = serve.deployment(
        EngineReplica,
        name="Engine",
        num_replicas=options.replicas,
        ray_actor_options={"num_cpus": options.cpus, "num_gpus": options.gpus},
        max_ongoing_requests=options.most_requests,
        graceful_shutdown_wait_loop_s=0.5,
        graceful_shutdown_timeout_s=options.drain_seconds,
        health_check_period_s=HEALTH_S,
        request_router_config=RequestRouterConfig(request_router_class=ROUTER),
    )
    return deployment.bind(options.engine)
