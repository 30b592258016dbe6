"""What forwards cost on this machine: measured, stored on disk, compared."""
