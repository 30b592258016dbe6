"""What every process has: its log, children of its own and tasks in the background."""
