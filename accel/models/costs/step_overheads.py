"""Costs of steps beside their forwards, in seconds."""

from __future__ import annotations

# Measure with `python -m tests.benchmarks completion --cases random --target model`.
STEP_S = 1e-4
"""Of a plain step outside of its forward, of every step whose drafter does not plan, and of drafts
that copy the code that is edited."""

DRAFTED_STEP_S = 3e-4
"""Of a step with a planned draft: the draft, learning, and caches that are cold. A tree is sized as
if this were spent already, since a larger one hardly adds to it."""

NODE_S = 1e-5
"""Of a node beside its row of the forward."""

AROUND_DRAFTS = 1.7
"""What a draft costs in all for its own time: rows and accepted tokens are laid out and learnt."""

USUAL_DRAFT_S = 8.5e-5
"""What a draft takes, until one was timed."""
