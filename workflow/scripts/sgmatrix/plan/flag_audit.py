"""Does the installed engine read a flag at all?

A flag that is only declared is parsed, echoed by /server_info and changes nothing: an axis
over it measures noise, or serves as an A/A test. The verdict is from the engine's source, by
its syntax tree: a read is an attribute of that name that is loaded (`server_args.NAME`), or
the name as a text in `getattr` and the like. Comments and other names do not count.

Limits  a name that is put together at run time is not seen; a read in code that never runs
        counts as one. So `dead` is a strong word and `read` a weak one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Where SGLang declares its flags; a mention there is no use of them.
_DECLARATIONS = ("srt/server_args.py", "srt/arg_groups/field_order.py", "srt/arg_groups/fields/")
_READERS = {"getattr", "hasattr", "attrgetter", "get", "pop"}


@dataclass(frozen=True)
class FlagUse:
    """What the source of an engine says of one flag."""

    flag: str
    declared: bool
    reads: tuple[str, ...]
    """Places that read it, `file:line` below the package; a few at most."""

    @property
    def verdict(self) -> str:
        """Return `read`, `dead_flag`, or `unknown_flag` when it is not even declared."""
        if self.reads:
            return "read"
        return "dead_flag" if self.declared else "unknown_flag"


def _reads(tree: ast.AST, flag: str) -> Iterable[int]:
    """Yield the lines of a module that read the flag."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == flag and isinstance(node.ctx, ast.Load):
            yield node.lineno
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            if name in _READERS and flag in texts:
                yield node.lineno


def audit_flags(package: Path, flags: Iterable[str], *, most: int = 3) -> dict[str, FlagUse]:
    """Look for uses of flags in an installed `sglang` package.

    Args:
        package: the folder `sglang`; only `sglang/srt`, which the server runs, is read.
        flags: names in Python's spelling, such as `mem_fraction_static`.
        most: how many places to keep per flag.
    """
    names = {flag: flag.encode() for flag in flags}
    declared = dict.fromkeys(names, False)
    reads: dict[str, list[str]] = {flag: [] for flag in names}
    for file in sorted((package / "srt").rglob("*.py")):
        source = file.read_bytes()
        mentioned = [flag for flag, raw in names.items() if raw in source]
        if not mentioned:
            continue
        place = file.relative_to(package).as_posix()
        if place.startswith(_DECLARATIONS):
            declared |= dict.fromkeys(mentioned, True)
        wanted = [flag for flag in mentioned if len(reads[flag]) < most]
        if not wanted or place.startswith("srt/arg_groups/field"):
            continue
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        for flag in wanted:
            reads[flag] += [f"{place}:{line}" for line in _reads(tree, flag)][:most]
    return {flag: FlagUse(flag, declared[flag], tuple(reads[flag][:most])) for flag in names}
