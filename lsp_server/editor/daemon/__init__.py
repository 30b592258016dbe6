"""One model process per machine: front, daemon, address."""
