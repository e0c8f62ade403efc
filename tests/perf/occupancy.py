"""Where the wall time of a campaign went, from its records: loaded, or on the way there.

    python tests/perf/occupancy.py results/<campaign>

A row per launch and their sum; then the gaps between the jobs of a launch, and the hand-overs from
the proven teardown of a launch to the start of the next one's server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow/scripts"))

from sgmatrix.core.layout import Layout
from sgmatrix.dataset.history import read_attempts
from sgmatrix.dataset.occupancy import PARTS, Occupancy, occupancy, read_events


def table(found: Occupancy) -> str:
    """Return seconds by launch and part, and the shares of the whole."""
    head = ["launch", *PARTS, "whole"]
    rows = [
        [f"{one.cell}, {one.launch}", *_numbers(one.seconds, one.total_s)] for one in found.launches
    ]
    sums = found.sums_s()
    rows.append(["all", *_numbers(sums, found.wall_s)])
    shares = [f"{100 * sums[part] / found.wall_s:.1f} %" for part in PARTS]
    rows.append(["share", *shares, "100 %"])
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _numbers(seconds: Mapping[str, float], whole_s: float) -> list[str]:
    return [f"{seconds[part]:.2f}" for part in PARTS] + [f"{whole_s:.2f}"]


def spread(name: str, values: Sequence[float]) -> str:
    """Return how many there are, the median and the range."""
    if not values:
        return f"{name}: none"
    return (
        f"{name}: {len(values)}, median {statistics.median(values):.2f} s, "
        f"{min(values):.2f} to {max(values):.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    layout = Layout(parser.parse_args().results)
    found = occupancy(read_attempts(layout), read_events(layout.events))
    if not found.launches:
        sys.exit(f"{layout.root} has no complete launch")
    print(table(found), end="\n\n")
    print(spread("gaps between jobs of a launch", [g for x in found.launches for g in x.gaps_s]))
    print(spread("hand-overs", found.handovers_s))
    print(f"requests were running in {100 * (found.loaded_share or 0.0):.1f} % of the time")


if __name__ == "__main__":
    main()
