"""The version, as in pyproject.toml; a test holds the two together."""

VERSION = "0.1.0"
