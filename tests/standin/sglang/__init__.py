"""Stand-in for the `sglang` package: only what `python -m sglang.launch_server` needs."""

__version__ = "0.5.23+standin"
