"""noisescale for assistants: a Model Context Protocol server that asks the REST API with its user's key.

Loaded by `noisescale mcp` alone, with the extra `mcp`: it may what the key may, and nothing else.
"""
