"""Routes about what projects take for granted."""
