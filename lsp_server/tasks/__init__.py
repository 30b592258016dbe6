"""What is computed for a job, in the engine process or from the answer of a server."""
