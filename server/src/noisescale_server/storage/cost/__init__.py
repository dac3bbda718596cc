"""Queries about what trainings took."""
