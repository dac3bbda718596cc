"""The track of one optimizer: its watch, its steps and what it records."""
