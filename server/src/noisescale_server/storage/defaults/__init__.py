"""What projects take for granted, as it is stored."""
