"""Figures of what training costs."""
