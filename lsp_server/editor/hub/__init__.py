"""Engines, the indexer and the memory that all clients of the daemon share."""
