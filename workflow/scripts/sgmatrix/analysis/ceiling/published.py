"""Published decode results beside the ceilings of the shipped facts: none may lie above."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sgmatrix.analysis.ceiling.decode import Speculation, decode_pass, tpot_s
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.core.facts.files import hardware_file, model_file, model_shape


@dataclass(frozen=True)
class Published:
    """One decode result of somebody else."""

    what: str
    tpot_ms: float
    hard_ms: float
    practical_ms: float
    source: str


def published(config: Path, context: float | None = None) -> Iterator[Published]:
    """Yield the decode results of `config/reference/published.csv` with their ceilings.

    Output throughput at a concurrency is taken as concurrency / TPOT, as those reports measure
    decoding alone. `context` stands in for the tokens that they name, of which they often count
    none; that gives the highest ceiling.
    """
    with (config / "reference" / "published.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["metric"] not in ("output_tok_s", "tpot_ms"):
            continue
        batch, value = int(row["concurrency"]), float(row["value"])
        drafts = int(row["draft_tokens"])
        speculation = Speculation(drafts) if drafts else None
        model = model_shape(model_file(config / "models", row["model"]))
        device = hardware_file(config / "hardware", row["hardware"]).device()
        hard, practical = (
            1e3
            * tpot_s(
                decode_pass(
                    model,
                    device,
                    Parallel(tp=int(row["tp"])),
                    tier,
                    batch=batch,
                    context=float(row["context"]) if context is None else context,
                    speculation=speculation,
                ),
                speculation,
            )
            for tier in ("hard", "practical")
        )
        flags = ", ".join(part for part in (row["engine"], row["flags"]) if part)
        at = f"concurrency {batch}"
        yield Published(
            f"{row['model']}, {row['tp']} x {row['hardware']}, {at}"
            + (f" ({flags})" if flags else ""),
            tpot_ms=value if row["metric"] == "tpot_ms" else 1e3 * batch / value,
            hard_ms=hard,
            practical_ms=practical,
            source=row["source"],
        )
