"""The tests, and the laboratory in ``tests.benchmarks``."""
