"""Options of a deployment, and the sessions that requests belong to."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from text_cases import data_cases

from lsp_server.shared.errors import DeployError
from lsp_server.team.ray_serve.options import DeployOptions
from lsp_server.team.ray_serve.session import session_id


def test_options_come_from_a_config_file():
    options = DeployOptions.of({"model": "/models/a.gguf", "replicas": 3, "gpus": 1, "threads": 4})
    assert (options.replicas, options.gpus) == (3, 1)
    assert options.engine.path == "/models/a.gguf"
    assert options.engine.threads == 4


@data_cases()
def test_a_wrong_option_is_named(args):
    with pytest.raises(DeployError, match=next(iter(args))):
        DeployOptions.of(args)


def test_a_session_is_of_one_key_and_one_repository():
    secret = b"s" * 32
    session = session_id(secret, "team", "repository")
    assert session == session_id(secret, "team", "repository")
    others = [
        session_id(secret, "team", "other"),
        session_id(secret, "other", "repository"),
        session_id(secret, "teamr", "epository"),
        session_id(b"t" * 32, "team", "repository"),
    ]
    assert len({session, *others}) == 5
    assert "team" not in session


def test_the_config_file_is_one_that_serve_takes():
    pytest.importorskip("ray", reason="ray is not installed: pip install 'redraft[ray]'")
    import yaml
    from ray.serve.schema import ServeDeploySchema

    text = (Path(__file__).resolve().parents[4] / "deploy" / "ray.yaml").read_text("utf-8")
    config = ServeDeploySchema(**yaml.safe_load(text))
    [application] = config.applications
    assert application.import_path == "lsp_server.team.ray_serve.application:build"
    options = DeployOptions.of(application.args)
    assert options.keys
    module, _, function = application.import_path.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
