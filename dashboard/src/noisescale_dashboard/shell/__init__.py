"""The frame of every page and the pieces that pages are made of."""
