"""The probe of a cell: experts that its decode steps read, and how likely it finds given texts."""
