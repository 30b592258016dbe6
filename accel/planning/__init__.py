"""How much to draft: two planners, by what forwards cost and how far drafts came true."""
