"""History to tables."""
