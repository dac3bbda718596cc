"""What a server says of itself and of live runs, to whoever watches it."""
