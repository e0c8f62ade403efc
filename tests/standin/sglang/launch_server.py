"""Entry point of the stand-in, `python -m sglang.launch_server`, as in the real SGLang.

One import, because `python -m` compiles this file anew on every start.
"""

from sglang.standin_server import main

if __name__ == "__main__":
    main()
