"""What a run measured, along its steps."""
