"""Measure an SGLang server over a matrix of settings.

Layers, each of which may import those to its left and none to its right:
core -> plan -> node -> load -> dataset -> analysis -> present.
The package knows neither Snakemake nor a path that it was not given.
"""
