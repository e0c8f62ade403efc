"""Pure computation on tables."""
