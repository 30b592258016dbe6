"""``redraft bench``: what a user asks about his own machine and model."""
