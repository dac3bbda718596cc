"""Runs, tasks and configurations set against each other."""
