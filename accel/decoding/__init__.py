"""The main loop, draft, verify, commit, and the requests that it answers."""
