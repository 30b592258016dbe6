"""What processes tell each other about an engine: its options, its status, jobs and results."""
