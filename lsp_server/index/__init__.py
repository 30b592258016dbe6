"""The datastores of workspaces: the process that builds them and the client that asks for it."""
