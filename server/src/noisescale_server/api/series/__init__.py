"""HTTP for what a run measured, along its steps."""
