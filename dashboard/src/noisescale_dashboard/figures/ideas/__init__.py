"""Figures of made-up data that explain an idea."""
