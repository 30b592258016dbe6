"""Computation of jobs, in the engine process or from the answer of a server."""
