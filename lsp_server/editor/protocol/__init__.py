"""What LSP messages travel by: frames, JSON-RPC, a connection, progress."""
