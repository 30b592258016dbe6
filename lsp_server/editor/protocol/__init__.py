"""The transport of LSP messages: frames, JSON-RPC, a connection, progress."""
