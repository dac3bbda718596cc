"""SQL for who asks, and what they may do."""
