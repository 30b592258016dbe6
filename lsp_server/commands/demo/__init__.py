"""``redraft demo``: the real server on real code, asked as an editor asks it."""
