"""The page of one run: its noise scale, and which batch size to use."""
