"""The team's server: the engine behind HTTP. Needs the extra ``server``."""
