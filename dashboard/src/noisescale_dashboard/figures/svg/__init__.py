"""Figures as SVG, without a browser: what prints, and what a file shows that nothing is loaded into."""

from noisescale_dashboard.figures.svg.drawing import as_svg

__all__ = ["as_svg"]
