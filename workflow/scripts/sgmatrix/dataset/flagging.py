"""Flags that only the tables can give, since one record alone does not show what is wrong."""

from __future__ import annotations

from typing import Any

from sgmatrix.core.flags import FLAG_NAMES


def add_flag(row: dict[str, Any], flag: str, why: str) -> None:
    """Give a row of `points` a flag, beside those that it has."""
    flags = {*str(row["validity"]).split(","), flag} - {"valid"}
    row["validity"] = ",".join(name for name in FLAG_NAMES if name in flags)
    told = [row.get("validity_detail"), f"{flag}: {why}"]
    row["validity_detail"] = " | ".join(text for text in told if text)
