"""Causal language models in the forms that they are found in."""
