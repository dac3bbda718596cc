"""The only SQL of the server: every function takes an `AsyncSession` first."""
