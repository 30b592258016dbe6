"""A team's server on Ray Serve: replicas of the engine behind the application of serve-http."""
