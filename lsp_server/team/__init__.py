"""One engine for many: behind HTTP, with copies of repositories, on Ray."""
