"""The laboratory: peers, replays, tables, plots, load. ``python -m tests.benchmarks COMMAND``."""
