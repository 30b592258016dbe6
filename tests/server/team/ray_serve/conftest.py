"""A cluster of this machine: an ingress and two replicas of a model. One cluster runs at a time."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from small_model import SMALL_MODEL

sys.path.insert(0, str(Path(__file__).parent))

from deployed import APPLICATION, KEY, OBJECT_STORE_BYTES, OTHER_KEY, Deployed

from lsp_server.team.ray_serve.environment import EVERYWHERE, has_haproxy, own_haproxy, use

# The token of the user's own clusters is left alone.
os.environ["RAY_AUTH_MODE"] = "disabled"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture(scope="session")
def haproxy_folder():
    with tempfile.TemporaryDirectory(prefix="redraft-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory, haproxy_folder):
    """The server with two replicas of the model that REDRAFT_TEST_MODEL names, or of the small one.

    HAProxy stands before it, or Ray's own proxy with REDRAFT_TEST_RAY_PROXY.
    """
    pytest.importorskip("ray", reason="ray is not installed: pip install 'redraft[ray]'")
    import ray
    from ray import serve

    from lsp_server.team.ray_serve.application import application
    from lsp_server.team.ray_serve.options import DeployOptions

    # After the imports: this process has an event loop for each test, and its router none of them.
    use(EVERYWHERE)
    if has_haproxy() and "REDRAFT_TEST_RAY_PROXY" not in os.environ:
        use(own_haproxy(haproxy_folder))
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"first {KEY}\nother {OTHER_KEY}\n")
    options = DeployOptions(
        path=os.environ.get("REDRAFT_TEST_MODEL", str(SMALL_MODEL)),
        threads=1,
        keys=str(keys),
        requests_per_minute=100_000.0,
        concurrent=200,
    )
    port = free_port()
    ray.init(
        num_cpus=8,
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
    )
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(application(options), name=APPLICATION, route_prefix="/")
        yield Deployed(f"http://127.0.0.1:{port}", options)
    finally:
        serve.shutdown()
        ray.shutdown()
