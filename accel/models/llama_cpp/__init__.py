"""llama.cpp as a backend: a process of its own computes, and verifies whole trees."""
