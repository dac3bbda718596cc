"""HTTP for runs and projects: what was trained."""
