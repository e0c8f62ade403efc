"""Figures of the report: data in, one inline SVG out. The same data give the same bytes."""
