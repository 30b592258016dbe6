"""Forwards of hybrids, most of whose layers are gated DeltaNet (Yang et al. 2024)."""
