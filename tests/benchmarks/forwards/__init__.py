"""Times of forwards and of first texts, and what they round."""
