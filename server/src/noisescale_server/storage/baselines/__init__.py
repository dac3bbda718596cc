"""The run that each project compares its others to, as it is stored."""
