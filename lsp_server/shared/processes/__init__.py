"""The log, child processes and background tasks of every process."""
