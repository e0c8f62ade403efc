"""Stand-in for sgl_kernel, whose CPU build is on no package index.

On a CPU SGLang imports names from it without a guard, and falls back to plain torch
when the CPU has no AMX. So every name imports, and a call raises NotImplementedError:
a kernel that is really needed fails loudly instead of returning something made up.
"""

from collections.abc import Callable
from typing import NoReturn

__version__ = "0.0.0+stand-in"


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Return a function that says which kernel is missing."""
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_args: object, **_kwargs: object) -> NoReturn:
        message = f"sgl_kernel.{name}: this is the CPU stand-in, it holds no kernels"
        raise NotImplementedError(message)

    missing.__name__ = name
    return missing
