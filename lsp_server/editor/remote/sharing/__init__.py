"""The workspaces that a server may keep copies of: which ones, and how they follow the files."""
