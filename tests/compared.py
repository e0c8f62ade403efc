"""Campaigns with a comparison whose launches are written as their jobs write them.

told = Compared(tmp_path, pair(...))
told.rounds(baseline=(10, 10.1, 9.9), variant=(20, 20.3, 19.7))   # mean TPOT, ms, of each round
told.skip_rest()                                                    # what was not needed
told.page()                                                         # the report, as HTML
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from finished import Finished
from sgmatrix.analysis.comparisons_table import write_comparisons
from sgmatrix.core.files import write_json
from sgmatrix.present.report import render

LOW, HIGH = "c0001-i16-o4-random-ids", "c0002-i16-o4-random-ids"
RATES = {1: 64, 2: 100}


def pair(baseline: dict[str, Any], variant: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return an entry of `compare`: decided at concurrency 2, 3 to 5 launches, no noise pair."""
    return {
        "name": "pair",
        "baseline": baseline,
        "variant": variant,
        "primary": {"concurrency": 2},
        "launches": {"min": 3, "max": 5},
        "noise_pair": False,
        **changes,
    }


class Compared(Finished):
    """The files of a campaign with one comparison."""

    @property
    def table(self) -> list[dict[str, Any]]:
        """Conclude; return the rows of `comparisons`."""
        out = self.layout.datasets / "comparisons.parquet"
        write_comparisons(self.layout, self.collect(), out)
        rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
        return rows

    def page(self) -> str:
        """Conclude; return the report."""
        assert self.table
        return render(self.layout, self.points)[0]

    def rounds(self, *, baseline: tuple[float, ...], variant: tuple[float, ...]) -> None:
        """Write the launches of the first rounds, with that mean TPOT in ms at both loads."""
        planned = self.plan["comparisons"][0]
        for arm, values in (("baseline", baseline), ("variant", variant)):
            for number, tpot_ms in enumerate(values):
                launch = planned["rounds"][number][arm]
                self.measured(planned[arm], launch, rates=RATES, itl_s=tpot_ms / 1e3)

    def skip_rest(self) -> None:
        """Record every launch that is not there as one that was not needed."""
        for one in self.plan["launches"]:
            if not self.layout.attempt_numbers(one["cell"], one["launch"]):
                self.skip(one["cell"], one["launch"])
                folder = self.layout.attempt(one["cell"], one["launch"], 1)
                for point in one["points"]:
                    self._not_needed(folder, one, point)

    def _not_needed(self, folder: Any, launch: dict[str, Any], point: dict[str, Any]) -> None:
        load_id = point["load_id"]
        place = {"cell": launch["cell"], "launch": launch["launch"], "load_id": load_id}
        place["point_key"] = point["key"]
        record = {"status": "skipped", "reason": "ab_decided", "detail": None, **place}
        write_json(folder / "points" / f"{load_id}.json", record)

    def probe(self, cell: str, **record: Any) -> None:
        """Publish a probe."""
        whole = {"status": "ok", "reason": None, "detail": None, **record}
        write_json(self.layout.launch(cell, "probe") / "probe.json", whole)
