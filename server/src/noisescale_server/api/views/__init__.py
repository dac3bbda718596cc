"""Routes about views that a team shares."""
