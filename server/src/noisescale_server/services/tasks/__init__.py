"""Plain functions for tasks: what is known before a run's first step."""
