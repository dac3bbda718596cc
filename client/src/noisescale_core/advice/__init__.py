"""Advice from a noise scale: one and the same in a job that has no server and on the server, word for word."""
