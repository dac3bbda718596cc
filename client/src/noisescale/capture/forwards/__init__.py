"""Which forwards belong to a step, and which of them count."""
