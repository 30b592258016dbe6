"""Forwards of a model over the KV caches of sessions."""
