"""``redraft demo``: the real server on real code, driven over stdio as an editor would."""
