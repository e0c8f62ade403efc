"""One piece of advice: what it is about, its number, and the formula behind the number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """One line."""

    topic: str
    """Stable name, such as `oea_saturated`."""
    text: str
    """With its number."""
    formula: str
    cells: tuple[str, ...] = ()
    """What it is about; empty: the campaign as a whole."""

    def record(self) -> dict[str, object]:
        """Return what `plan.json` keeps."""
        return {
            "topic": self.topic,
            "text": self.text,
            "formula": self.formula,
            "cells": list(self.cells),
        }

    def line(self) -> str:
        """Return it as the plan prints it."""
        about = f"{shortened(self.cells)}: " if self.cells else ""
        return f"{self.topic}: {about}{self.text} [{self.formula}]"


def shortened(names: Iterable[str], most: int = 3) -> str:
    """Return some names and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def counts(values: Iterable[int]) -> str:
    """Return numbers as a reader reads them: `64, 256 and 1,024`."""
    texts = [f"{value:,}" for value in sorted(values)]
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
