"""What follows from imported runs, or what is missing for it."""
