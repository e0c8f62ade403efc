"""The profile of a cell: the engine's own profiler, in the middle of a wave of its load."""
