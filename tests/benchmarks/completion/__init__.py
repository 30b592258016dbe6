"""Completions against their peers, by replay and on a model."""
