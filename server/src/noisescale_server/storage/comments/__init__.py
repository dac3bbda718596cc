"""What people say about runs, as it is stored."""
