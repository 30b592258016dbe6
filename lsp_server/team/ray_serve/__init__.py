"""A team's server on Ray Serve: replicas of the engine that the application of serve-http asks."""
