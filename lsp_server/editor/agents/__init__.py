"""Tools for coding agents, over the Model Context Protocol: they edit files of a workspace."""
