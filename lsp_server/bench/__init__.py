"""Benches that users run: ``redraft bench``."""
