"""Records to the server: exactly once, again and again, and what earlier jobs have left."""
