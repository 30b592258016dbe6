"""A cluster of this machine with two replicas of the embedded model. One runs at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Asked for while a cluster starts and by its workers: nothing is reported, and the token of the
# user's own clusters is left alone.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"

APPLICATION = "redraft"
OBJECT_STORE_BYTES = 200_000_000


@pytest.fixture(scope="session")
def cluster():
    """Ray on this machine, without a dashboard."""
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'redraft[ray]'")
    from ray import serve

    ray.init(
        num_cpus=8,
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
    )
    yield ray
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="session")
def replicas(cluster):
    """The handle of two replicas."""
    from ray import serve

    from lsp_server.ray_serve.application import engines
    from lsp_server.ray_serve.options import DeployOptions

    made = engines(DeployOptions(replicas=2, threads=1, cpus=1))
    return serve.run(made, name=APPLICATION, route_prefix=None)
