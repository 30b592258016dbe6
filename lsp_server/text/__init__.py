"""Documents and their syntax."""
