"""Repositories that editors keep at a team's server."""
