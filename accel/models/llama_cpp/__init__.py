"""llama.cpp behind the model contract: a process of its own computes, and verifies whole trees."""
