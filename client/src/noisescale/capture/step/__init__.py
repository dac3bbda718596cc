"""One optimizer step: the states that it goes through, as values, and the one place where they change."""
