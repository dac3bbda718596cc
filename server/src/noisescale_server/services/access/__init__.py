"""Plain functions for who asks, and what they may do."""
