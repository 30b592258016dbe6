"""Parts of compiled code: vectors, memory, and a cache of machine code."""
