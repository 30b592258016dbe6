"""One engine for many: over HTTP, with copies of repositories, on Ray."""
