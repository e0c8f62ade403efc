"""The live display of a running campaign."""
