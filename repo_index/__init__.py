"""A repository datastore of token sequences that is always current."""
