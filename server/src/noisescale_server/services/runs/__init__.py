"""Plain functions for runs and projects: what was trained."""
