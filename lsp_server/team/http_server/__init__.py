"""The team's server: the engine over HTTP. Needs the extra ``server``."""
