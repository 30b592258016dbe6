"""The datastore: build, look up, refresh."""
