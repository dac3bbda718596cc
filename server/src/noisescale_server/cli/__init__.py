"""The server's commands of `noisescale`."""
