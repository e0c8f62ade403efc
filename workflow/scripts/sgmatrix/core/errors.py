"""The one exception of the package: a stable code, the facts, and what to do about it."""

from __future__ import annotations


class SgmatrixError(Exception):
    """Raised when the product refuses or cannot go on; its text is what the user reads.

    Args:
        code: stable name, a reason class of `core.reasons` or a more special one;
            reports, tracking tags and tests match on it, so it is never renamed.
        facts: the thing, its value and what is allowed, with numbers.
        fix: what to do, in the imperative; empty where there is nothing to do.
    """

    def __init__(self, code: str, facts: str, *, fix: str = "") -> None:
        self.code = code
        self.facts = facts
        self.fix = fix
        super().__init__(code, facts, fix)

    def __str__(self) -> str:
        return f"{self.code}: {self.facts}" + (f"; fix: {self.fix}" if self.fix else "")


class Refusal(SgmatrixError):
    """Several things wrong with one input, all of them named at once."""

    def __init__(self, code: str, problems: list[str], *, fix: str = "") -> None:
        self.problems = problems
        super().__init__(code, problems[0], fix=fix)

    def __str__(self) -> str:
        lines = [f"{self.code}: {problem}" for problem in self.problems]
        if self.fix:
            lines[-1] += f"; fix: {self.fix}"
        return "\n".join(lines)
