"""Facts of models and hardware as typed values: dimensions, number formats, rates, links."""
