"""Other drafting systems on the same model, for comparison."""
