"""Faults by the hundred against real clients, servers and a real Postgres; what was accepted must be stored once."""
