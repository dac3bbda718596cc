"""Views that a team shares, as they are stored."""
