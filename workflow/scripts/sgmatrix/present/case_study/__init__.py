"""A page of documentation on a finished campaign, of which every figure can be made again."""
