"""Costs of forwards on this machine: learnt from those that are run, and stored."""
