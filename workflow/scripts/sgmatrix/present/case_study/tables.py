"""The tables of a page, as Markdown; each says of how many launches a number is.

A number that a flag bars from comparison bears an asterisk; what was not measured is blank.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.dataset.figures import Figure, LoadPoint, load_points
from sgmatrix.dataset.occupancy import PARTS
from sgmatrix.present.case_study.experts import expected, mean_experts
from sgmatrix.present.case_study.page import markdown
from sgmatrix.present.case_study.store import Study

Pick = Callable[[LoadPoint], Figure | None]


def table(study: Study, name: str) -> str:
    """Return a table of a page.

    Raises:
        SgmatrixError: `config_rejected` for a name that is none.
    """
    if name not in TABLES:
        raise SgmatrixError(
            "config_rejected", f"no table {name}", fix=f"one of {', '.join(sorted(TABLES))}"
        )
    return TABLES[name](study)


def number(value: float | None, digits: int = 2) -> str:
    """Return a number; a missing one is blank."""
    return "" if value is None else f"{value:,.{digits}f}"


def shown(figure: Figure | None, digits: int) -> str:
    """Return the mean of a figure, with an asterisk where a flag bars it."""
    return "" if figure is None else number(figure.mean, digits) + ("*" if figure.barred else "")


def loads_of(study: Study, cell: str) -> dict[int, LoadPoint]:
    """Return what a cell did, by concurrency."""
    rows = [row for row in study.of_cell(cell) if row["status"] == "ok"]
    return {one.concurrency: one for one in load_points(rows) if one.concurrency is not None}


def concurrencies(study: Study) -> list[int]:
    return sorted({row["concurrency"] for row in study.points if row["concurrency"]})


def _launches(study: Study, cell: str) -> int:
    return len({row["launch"] for row in study.of_cell(cell) if row["status"] == "ok"})


def cells(study: Study) -> str:
    """Return what was run, and what of it is flagged."""
    rows = []
    for cell in study.cells:
        points = study.of_cell(cell)
        ok = [row for row in points if row["status"] == "ok"]
        flags = Counter(flag for row in ok for flag in (row["validity"] or "").split(","))
        valid = flags.pop("valid", 0)
        told = ", ".join(f"{flag} {count}" for flag, count in sorted(flags.items()) if flag)
        planned = study.facts["launches"].get(cell, 0)
        rows.append(
            [
                cell,
                f"{_launches(study, cell)} of {planned}",
                f"{len(ok)} of {len(points)}",
                str(valid),
                told,
            ]
        )
    return markdown(["cell", "launches", "points", "valid", "flags"], rows)


def _by_cell(digits: int, pick: Pick) -> Callable[[Study], str]:
    def made(study: Study) -> str:
        loads = {cell: loads_of(study, cell) for cell in study.cells}
        head = ["concurrency", *(f"{cell} ({_launches(study, cell)})" for cell in study.cells)]
        rows = []
        for at in concurrencies(study):
            figures = (pick(mine[at]) if at in mine else None for mine in loads.values())
            rows.append([str(at), *(shown(one, digits) for one in figures)])
        return markdown(head, rows)

    return made


def levers(study: Study) -> str:
    """Return the difference of each cell's throughput from the base, in percent."""
    base = study.cells[0]
    loads = {cell: loads_of(study, cell) for cell in study.cells}
    others = [cell for cell in study.cells if cell != base]
    head = ["concurrency", *(f"{cell} ({_launches(study, cell)})" for cell in others)]
    rows = [
        [str(at)] + [_difference(loads[cell].get(at), loads[base].get(at)) for cell in others]
        for at in concurrencies(study)
    ]
    return markdown(head, rows)


def _difference(one: LoadPoint | None, base: LoadPoint | None) -> str:
    mine = one.output_tok_s if one else None
    theirs = base.output_tok_s if base else None
    if mine is None or theirs is None:
        return ""
    mark = "*" if mine.barred or theirs.barred else ""
    return f"{100 * (mine.mean / theirs.mean - 1):+.1f} %{mark}"


def ceiling(study: Study) -> str:
    """Return the base beside what physics allows it."""
    rows = []
    base = study.cells[0]
    loads = loads_of(study, base)
    for at in concurrencies(study):
        points = [row for row in study.of_cell(base) if row["concurrency"] == at]
        known = next((row for row in points if row["ceiling_practical_tok_s"]), None)
        rate = loads[at].output_tok_s if at in loads else None
        if known is None or rate is None:
            continue
        practical, hard = known["ceiling_practical_tok_s"], known["ceiling_hard_tok_s"]
        rows.append(
            [
                str(at),
                str(rate.launches),
                shown(rate, 0),
                number(practical, 0),
                number(hard, 0),
                f"{100 * rate.mean / practical:.0f} %",
                f"{100 * rate.mean / hard:.0f} %",
                shown(loads[at].tpot_ms, 2),
                number(known["ceiling_practical_tpot_ms"]),
                number(known["ceiling_distinct_experts"], 1),
                known["ceiling_bound"] or "",
            ]
        )
    head = ["concurrency", "launches", "tok/s", "practical tok/s", "hard tok/s", "of practical"]
    head += ["of hard", "TPOT ms", "practical TPOT ms", "experts", "bound"]
    return markdown(head, rows)


def comparisons(study: Study) -> str:
    """Return the verdicts of the campaign's own comparisons, by load point."""
    at = {row["load_id"]: row["concurrency"] for row in study.points}
    rows = []
    for row in sorted(
        study.comparisons, key=lambda one: (one["comparison"], at.get(one["load_id"]) or 0)
    ):
        interval = [row["interval_low_percent"], row["interval_high_percent"]]
        rows.append(
            [
                row["comparison"],
                str(at.get(row["load_id"], row["load_id"])),
                str(row["pairs"]),
                number(row["baseline_mean"], 3),
                number(row["variant_mean"], 3),
                "" if row["effect_percent"] is None else f"{row['effect_percent']:+.1f} %",
                "" if None in interval else f"{interval[0]:+.1f} to {interval[1]:+.1f} %",
                row["verdict"] + (" (decides)" if row["primary"] else ""),
            ]
        )
    metric = study.comparisons[0]["metric"] if study.comparisons else "metric"
    head = ["comparison", "concurrency", "pairs of launches", f"baseline {metric}"]
    return markdown([*head, f"variant {metric}", "effect", "interval", "verdict"], rows)


def experts(study: Study) -> str:
    """Return distinct experts per step and layer against what follows from even routing."""
    found = mean_experts(study.experts)
    rows = []
    for cell, by_batch in found.items():
        for batch, one in sorted(by_batch.items()):
            base = found.get(study.cells[0], {}).get(batch)
            drop = "" if base is None else f"{100 * (one.mean / base.mean - 1):+.1f} %"
            rows.append(
                [
                    cell,
                    str(batch),
                    number(one.mean, 1),
                    str(one.steps),
                    number(expected(study, cell, one, batch), 1),
                    drop,
                ]
            )
    head = ["cell", "requests in the step", "experts opened", "steps", "by even routing"]
    return markdown([*head, f"against {study.cells[0]}"], rows)


def energy(study: Study) -> str:
    """Return watts and joules per token of the base, by load."""
    base = study.cells[0]
    loads = loads_of(study, base)
    idle = [row["power_idle_w"] for row in study.of_cell(base) if row["power_idle_w"] is not None]
    rows = [
        [str(at), str(one.power_w.launches), shown(one.power_w, 0), shown(one.energy_j, 3)]
        for at, one in sorted(loads.items())
        if one.power_w is not None
    ]
    if idle:
        rows.insert(
            0, ["idle, before the start", str(len(idle)), number(statistics.fmean(idle), 0), ""]
        )
    return markdown(["concurrency", "launches", "W", "J per output token"], rows)


def phases(study: Study) -> str:
    """Return mean seconds of the parts of a launch, and of all of them the share."""
    time = study.occupancy
    rows = []
    for cell in study.cells:
        mine = [one for one in time.launches if one.cell == cell]
        if mine:
            means = [statistics.fmean(one.seconds[part] for one in mine) for part in PARTS]
            whole = statistics.fmean(one.total_s for one in mine)
            rows.append([cell, str(len(mine)), *(number(s, 1) for s in means), number(whole, 1)])
    if time.launches:
        sums = time.sums_s()
        shares = [f"{100 * sums[part] / time.wall_s:.1f} %" for part in PARTS]
        rows.append(
            ["share of the whole", str(len(time.launches)), *shares, number(time.wall_s, 0)]
        )
    return markdown(["cell", "launches", *(f"{part} s" for part in PARTS), "whole s"], rows)


def gaps(study: Study) -> str:
    """Return what lies between jobs, and between launches."""
    found: Mapping[str, Sequence[float]] = {
        "between two jobs of a launch": [g for x in study.occupancy.launches for g in x.gaps_s],
        "from a proven teardown to the next server's start": study.occupancy.handovers_s,
    }
    rows = [
        [
            what,
            str(len(values)),
            number(statistics.median(values)),
            number(min(values)),
            number(max(values)),
        ]
        for what, values in found.items()
        if values
    ]
    return markdown(["gap", "number", "median s", "least s", "most s"], rows)


def machine(study: Study) -> str:
    """Return where it was measured, and with what."""
    facts = study.facts
    rows = [["campaign", facts["campaign"]], ["model", facts["model"]], ["client", facts["client"]]]
    versions = sorted(
        {str(row["engine_version"]) for row in study.points if row.get("engine_version")}
    )
    rows.append(["SGLang", ", ".join(versions)])
    for number_, one in enumerate(facts["nodes"], 1):
        node = one["node"]
        gpus = [str(gpu["name"]) for gpu in node.get("gpus") or []]
        drivers = {str(gpu.get("driver_version")) for gpu in node.get("gpus") or []}
        rows += [
            [f"machine {number_}", f"{len(gpus)} x {gpus[0]}" if gpus else "no GPU"],
            [f"driver {number_}", ", ".join(sorted(drivers))],
            [f"launches on it {number_}", str(len(one["launches"]))],
        ]
    days = sorted(
        {row["started_at"].strftime("%Y-%m-%d") for row in study.points if row["started_at"]}
    )
    rows.append(["measured on", ", ".join(days)])
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)])


TABLES: Mapping[str, Callable[[Study], str]] = {
    "cells": cells,
    "throughput": _by_cell(0, lambda load: load.output_tok_s),
    "tpot": _by_cell(2, lambda load: load.tpot_ms),
    "ttft": _by_cell(0, lambda load: load.ttft_ms),
    "levers": levers,
    "ceiling": ceiling,
    "comparisons": comparisons,
    "experts": experts,
    "energy": energy,
    "phases": phases,
    "gaps": gaps,
    "machine": machine,
}
