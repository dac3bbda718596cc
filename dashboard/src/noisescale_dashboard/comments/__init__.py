"""What people say about a run, at the foot of its page."""
