"""Campaign to cells, launches, points, ids, keys and command lines. Pure but for reading files."""
