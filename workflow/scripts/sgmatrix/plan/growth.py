"""What the history of a launch already serves, and where a load point that was added later goes.

Nothing that is finished is measured again. A point that is missing from a finished launch is
measured in an extra launch, `1-extra1`: another server start, which is therefore never a
repetition of the launch in a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from sgmatrix.core.files import read_json_or_none
from sgmatrix.core.layout import EXTRA, Layout


def served_points(layout: Layout, cell: str, launch: str, key: str) -> set[str] | None:
    """Return the load ids that the newest complete attempt of a launch was to serve.

    None when there is none, or when it was of another server: then the launch is done whole.
    """
    for number in reversed(layout.attempt_numbers(cell, launch)):
        folder = layout.attempt(cell, launch, number)
        final = read_json_or_none(folder / "teardown.json")
        if final is None:
            continue
        if final["status"] == "skipped":  # it was not needed, and measured nothing
            return None
        spec = read_json_or_none(folder / "spec.json")
        if spec is None or spec["cell"]["key"] != key:
            return None
        return {point["load_id"] for point in spec["points"]}
    return None


def share_out(
    layout: Layout, cell: str, launch: str, key: str, wanted: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """Return which launch serves which of the wanted load ids, in order: the launch, its extras.

    Args:
        layout: where the history lies.
        cell: cell id.
        launch: number of the launch.
        key: cell key; history of another key does not count.
        wanted: load ids in the order of measuring.
    """
    served = served_points(layout, cell, launch, key)
    if served is None:
        return [(launch, list(wanted))]
    shares = [(launch, [load for load in wanted if load in served])]
    left = [load for load in wanted if load not in served]
    number = 0
    while left:
        number += 1
        name = f"{launch}{EXTRA}{number}"
        served = served_points(layout, cell, name, key)
        # one that was never finished takes all that is left
        shares.append((name, [load for load in left if served is None or load in served]))
        left = [load for load in left if served is not None and load not in served]
    return [(name, loads) for name, loads in shares if loads]
