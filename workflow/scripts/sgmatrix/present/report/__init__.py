"""One campaign as one HTML file: what is best, how far from physics, what failed, what to doubt."""

from sgmatrix.present.report.page import render, write_report

__all__ = ["render", "write_report"]
