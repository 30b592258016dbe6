"""Messages between processes about an engine: its options, its status, jobs and results."""
