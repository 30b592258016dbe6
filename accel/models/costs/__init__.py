"""What forwards cost on this machine: measured, kept on disk, compared."""
