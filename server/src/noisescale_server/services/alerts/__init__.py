"""Rules that watch runs, and messages to whoever wants to know: once for each event, or said to be undelivered."""
