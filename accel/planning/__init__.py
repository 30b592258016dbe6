"""How much to draft: costs of forwards, chances of drafts, and what they brought lately."""
