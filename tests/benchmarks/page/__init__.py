"""What the project's page shows: a chart of what was measured, and a table of models by machine."""
