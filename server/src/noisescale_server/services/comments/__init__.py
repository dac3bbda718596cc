"""What people say about runs, and whom they mention."""
