"""HTTP for the run that a project compares its others to."""
