"""Two planners of drafts, by the costs of forwards and by the drafts that came true."""
