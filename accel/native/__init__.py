"""What compiled code is made with: vectors, memory, and a cache of machine code."""
