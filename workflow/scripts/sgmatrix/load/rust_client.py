"""Run SGLang's Rust load client in a bare interpreter: `rust_client.py EXTENSION ARG...`.

A file of its own, without imports of ours: it is run by the client engine's Python with -I -S,
which starts in milliseconds where `python -m sglang.benchmark...` imports torch for seconds.
"""

import importlib.util
import sys


def main(extension: str, arguments: list[str]) -> None:
    spec = importlib.util.spec_from_file_location("_bench", extension)
    if spec is None or spec.loader is None:
        sys.exit(f"{extension} is no Python extension")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.run_argv(["sglang-bench", *arguments])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
