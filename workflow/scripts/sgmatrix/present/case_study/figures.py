"""The figures of a page, as files that stand alone, light or dark as the reader's page is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sgmatrix.dataset.figures import Figure, LoadPoint
from sgmatrix.present.case_study.experts import mean_experts
from sgmatrix.present.case_study.store import Study
from sgmatrix.present.case_study.tables import loads_of
from sgmatrix.present.figures.curves import Curve, Mark, draw
from sgmatrix.present.figures.palette import (
    COLOURS,
    DARK,
    LIGHT,
    MARKERS,
    MUTED,
    PAGE,
    css_variables,
)
from sgmatrix.present.figures.svg import element, figure, ink

_SCHEMES = (
    f":root {{color: #1a1c1f; --muted: #6f757d; {css_variables(LIGHT)}}} "
    f"@media (prefers-color-scheme: dark) {{:root {{color: #e6e8eb; --muted: #8b929b; "
    f"{css_variables(DARK)}}}}} text {{font-family: sans-serif; fill: currentColor}} "
    ".legend text {font-size: 12px}"
)
_WIDTH_PX, _LEGEND_PX = 620, 18

Entry = tuple[str, str, str]
"""Label, colour, marker."""


def files(study: Study) -> dict[str, str]:
    """Return the figures by file name; one whose data are not there is left out."""
    return {f"{name}.svg": text for name, make in FIGURES.items() if (text := make(study))}


def standalone(svg: str, entries: Sequence[Entry]) -> str:
    """Return an SVG file of a figure of the report: sizes, colours and a legend of its own."""
    if not svg:
        return ""
    head, _, body = svg.partition(">")
    box = head.partition('viewBox="')[2].partition('"')[0]
    width, height = (float(one) for one in box.split()[2:])
    scale = _WIDTH_PX / width
    rows = len(entries) * _LEGEND_PX
    total = height * scale + rows + 8
    legend = "".join(
        f'<g transform="translate(40 {height * scale + 12 + place * _LEGEND_PX})">'
        f'<line x2="26" y1="-3" y2="-3" style="stroke: {colour}; stroke-width: 2"/>'
        f'<text x="34">{_escaped(label)}</text></g>'
        for place, (label, colour, _) in enumerate(entries)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{_WIDTH_PX}" height="{total:.0f}" viewBox="0 0 {_WIDTH_PX} {total:.0f}">'
        f"<style>{_SCHEMES}</style>\n"
        f'{head} width="{_WIDTH_PX}" height="{height * scale:.1f}">{body}'
        f'<g class="legend">{legend}</g></svg>\n'
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _look(place: int) -> tuple[str, str]:
    """Return colour and marker of a cell: the base as the page's text, then the palette."""
    if place == 0:
        return PAGE, "o"
    return COLOURS[(place - 1) % len(COLOURS)], MARKERS[(place - 1) % len(MARKERS)]


def _marks(figures: Mapping[int, Figure | None]) -> tuple[Mark, ...]:
    return tuple(
        Mark(at, one.mean, one.low, one.high, one.barred)
        for at, one in sorted(figures.items())
        if one is not None
    )


def _against_concurrency(
    ylabel: str, pick: Callable[[LoadPoint], Figure | None]
) -> Callable[[Study], str]:
    def made(study: Study) -> str:
        curves, entries = [], []
        for place, cell in enumerate(study.cells):
            colour, marker = _look(place)
            marks = _marks({at: pick(load) for at, load in loads_of(study, cell).items()})
            if marks:
                curves.append(Curve(colour, place == 0, marks, marker=marker))
                entries.append((cell, colour, marker))
        return standalone(draw(curves, ylabel=ylabel), entries)

    return made


def ceiling(study: Study) -> str:
    """Return the base's throughput below its two ceilings."""
    base = study.cells[0]
    measured = _marks({at: load.output_tok_s for at, load in loads_of(study, base).items()})
    curves = [Curve(PAGE, False, measured)]
    entries = [(f"{base}, measured", PAGE, "o")]
    for colour, column, label in (
        (COLOURS[0], "ceiling_practical_tok_s", "practical ceiling"),
        (COLOURS[2], "ceiling_hard_tok_s", "hard ceiling"),
    ):
        known = {row["concurrency"]: row[column] for row in study.of_cell(base) if row.get(column)}
        marks = tuple(Mark(at, y, y, y, barred=False) for at, y in sorted(known.items()))
        if marks:
            curves.append(Curve(colour, False, marks, "ceiling"))
            entries.append((label, colour, ""))
    return standalone(draw(curves, ylabel="output throughput (tok/s)"), entries) if measured else ""


def comparisons(study: Study) -> str:
    """Return the effect of each comparison against concurrency, with its interval."""
    at = {row["load_id"]: row["concurrency"] for row in study.points}
    names = list(dict.fromkeys(row["comparison"] for row in study.comparisons))
    drawn = [row for row in study.comparisons if row["effect_percent"] is not None]
    if not drawn:
        return ""
    with figure(4.7, 3.3) as made:
        axes = made.add_subplot()
        axes.axhline(0, color=ink(PAGE), linewidth=0.8)
        for place, name in enumerate(names):
            rows = sorted(
                (row for row in drawn if row["comparison"] == name),
                key=lambda row: at[row["load_id"]],
            )
            colour, marker = _look(place + 1)
            xs = [at[row["load_id"]] * (1 + 0.03 * place) for row in rows]
            axes.plot(
                xs,
                [row["effect_percent"] for row in rows],
                color=ink(colour),
                marker=marker,
                linewidth=1.2,
                markersize=4,
            )
            spread = [
                (x, row["interval_low_percent"], row["interval_high_percent"])
                for x, row in zip(xs, rows, strict=True)
                if row["interval_low_percent"] is not None
            ]
            if spread:
                axes.vlines(*zip(*spread, strict=True), color=ink(colour), linewidth=1.2)
        axes.set_xscale("log", base=2)
        ticks = sorted({float(at[row["load_id"]]) for row in drawn})
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.grid(visible=True)
        axes.set_xlabel("concurrency (requests in flight)")
        axes.set_ylabel(f"change of {drawn[0]['metric']} (%)")
        svg = element(made)
    return standalone(svg, [(name, *_look(place + 1)) for place, name in enumerate(names)])


def experts(study: Study) -> str:
    """Return distinct experts per step against the batch."""
    found = mean_experts(study.experts)
    curves, entries = [], []
    for place, cell in enumerate(study.cells):
        marks = tuple(
            Mark(batch, one.mean, one.mean, one.mean, barred=False)
            for batch, one in sorted(found.get(cell, {}).items())
        )
        if marks:
            colour, marker = _look(place)
            curves.append(Curve(colour, place == 0, marks, marker=marker))
            entries.append((cell, colour, marker))
    return standalone(draw(curves, ylabel="experts opened per step and layer"), entries)


def power(study: Study) -> str:
    """Return the power of the GPUs over the first complete launch of the base."""
    base = study.cells[0]
    rows = [
        row
        for row in study.telemetry
        if row["cell"] == base and row["name"] == "power_w" and row["value"] is not None
    ]
    if not rows:
        return ""
    launch = min(row["launch"] for row in rows)
    devices = sorted({row["device"] for row in rows})
    with figure(6.2, 2.8) as made:
        axes = made.add_subplot()
        for place, device in enumerate(devices):
            mine = sorted(
                (row["t_s"], row["value"])
                for row in rows
                if (row["launch"], row["device"]) == (launch, device)
            )
            axes.plot(*zip(*mine, strict=True), color=ink(_look(place)[0]), linewidth=1.4)
        begins: dict[str, float] = {}
        for row in rows:
            if row["launch"] == launch:
                part = row["load_id"] or row["phase"]
                begins[part] = min(row["t_s"], begins.get(part, row["t_s"]))
        top = axes.get_ylim()[1]
        for part, begin in begins.items():
            axes.axvline(begin, color=ink(MUTED), linewidth=0.6, linestyle=":")
            axes.text(begin, top, f" {_short(part)}", fontsize=7, rotation=90, va="top")
        axes.set_ylim(0, top)
        axes.set_xlabel(f"seconds since the start of the server of {base}, launch {launch}")
        axes.set_ylabel("power of a GPU (W)")
        axes.grid(visible=True)
        svg = element(made)
    return standalone(svg, [(str(name), *_look(place)) for place, name in enumerate(devices)])


def _short(part: str) -> str:
    """Return a load id by its concurrency, a phase as it is."""
    return part.partition("-")[0].lstrip("c").lstrip("0") or part if part[1:2].isdigit() else part


FIGURES: Mapping[str, Callable[[Study], str]] = {
    "throughput": _against_concurrency("output throughput (tok/s)", lambda one: one.output_tok_s),
    "tpot": _against_concurrency("mean TPOT (ms)", lambda one: one.tpot_ms),
    "ceiling": ceiling,
    "comparisons": comparisons,
    "experts": experts,
    "power": power,
}
