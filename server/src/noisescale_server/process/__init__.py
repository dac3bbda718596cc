"""A server's process: how it listens, logs, refreshes, and what it must have before it starts."""
