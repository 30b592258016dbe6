"""The engine of a server: the team's own, or any that speaks OpenAI's protocol."""
