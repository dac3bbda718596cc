"""Plain functions for what a run measured, along its steps."""
