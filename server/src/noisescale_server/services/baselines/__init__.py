"""The run that a project compares its others to."""
