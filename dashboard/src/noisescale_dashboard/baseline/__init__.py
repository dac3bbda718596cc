"""The run that others of a project are compared to."""
