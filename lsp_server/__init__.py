"""The Redraft language server, its daemon, its command line and its benches."""
