"""Repositories that editors keep at a team's server, and the editor's side of it."""
