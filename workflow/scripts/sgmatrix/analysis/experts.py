"""Why OEA does or does not make a server faster: experts, bytes, and the plug-in's own work.

Notation  T distinct experts that a decode step reads in a layer, in the mean; TPOT in ms.
Source    where reading experts bounds a step, TPOT falls by dT x bytes of an expert x layers /
          bandwidth (docs/oea.md). Less than that comes of what is not expert reading, and of the
          plug-in itself.
Not here  whether a difference is real (`analysis.ab`); the text for people (`present`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Cause = Literal[
    "gain",
    "better_without",
    "better_unexplained",
    "no_fewer_experts",
    "not_expert_bound",
    "router_overhead",
    "confounded",
    "unknown",
]

_FEWER = 0.03
"""Share of experts below which a drop is none."""
_APART = 0.2
"""Share by which two measurements of one bandwidth may differ before it is said."""
_ALIKE = 1e-5
"""Of log-probabilities: single precision, summed over a text."""


@dataclass(frozen=True)
class BatchEffect:
    """Both arms at one batch size."""

    batch: int
    activated_off: float | None
    activated_on: float | None
    drop_share: float | None
    """1 - on / off."""
    predicted_ms: float | None
    """By how much TPOT falls if reading experts is all that a step waits for."""


@dataclass(frozen=True)
class Quality:
    """Mean log-probability per token of the same texts, forced through decode steps."""

    off: float | None
    on: float | None
    difference: float | None
    standard_error: float | None
    """Of the difference, over the texts."""
    tokens: int
    texts: int
    alike: bool
    """Every text was as likely as any other, in both arms: the model tells no token apart."""
    why_not: str | None
    """Why it was not measured; None where it was."""


@dataclass(frozen=True)
class Bandwidth:
    """Memory bandwidth of the device, in bytes/s, as both probes measured it."""

    off: float | None
    on: float | None

    @property
    def largest(self) -> float | None:
        """What the device can do: others that use it make a measurement smaller, never larger."""
        return max((one for one in (self.off, self.on) if one), default=None)

    @property
    def apart(self) -> bool:
        """The smaller is more than 20 % below the larger: one was disturbed."""
        if not self.off or not self.on:
            return False
        return min(self.off, self.on) < (1 - _APART) * max(self.off, self.on)


def bandwidth_of(off: Mapping[str, Any], on: Mapping[str, Any]) -> Bandwidth:
    """Return the bandwidth that two probes (`probe.json`; empty: there is none) measured."""
    return Bandwidth(*(probe.get("memory_bandwidth_bytes_s") for probe in (off, on)))


def batch_effects(
    off: Mapping[str, Any],
    on: Mapping[str, Any],
    *,
    expert_bytes: float | None,
    ranks: int,
) -> list[BatchEffect]:
    """Return what two probes say of each batch size that either has.

    Args:
        off: `probe.json` of the cell with OEA off; empty: there is none.
        on: of the cell with OEA on.
        expert_bytes: weights of one expert in one layer; None: not known.
        ranks: over which each expert's weights, or the experts, are spread.
    """
    batches = sorted({*map(int, off.get("batches") or {}), *map(int, on.get("batches") or {})})
    bandwidth = bandwidth_of(off, on).largest
    effects = []
    for batch in batches:
        before, after = (_at(probe, batch) for probe in (off, on))
        t_off, t_on = before.get("activated_mean"), after.get("activated_mean")
        drop = predicted = None
        if t_off and t_on is not None:
            drop = 1 - t_on / t_off
            if bandwidth and expert_bytes:
                read = (t_off - t_on) * expert_bytes * before["layers"] / ranks
                predicted = 1e3 * read / bandwidth
        effects.append(BatchEffect(batch, t_off, t_on, drop, predicted))
    return effects


def _at(probe: Mapping[str, Any], batch: int) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (probe.get("batches") or {}).get(str(batch)) or {}
    return found


def cause(
    effect: BatchEffect | None,
    *,
    verdict: str,
    tpot_off_ms: float | None,
    bound_percent: float,
    confounded: bool = False,
) -> Cause:
    """Return why OEA helped or did not, at the load point that decides.

    A gain is put down to experts only where fewer were read, in steps whose time decides, and
    nothing else differs.

    Args:
        effect: of the batch size of that load point; None: it was not probed.
        verdict: of the comparison there.
        tpot_off_ms: with OEA off; None: another metric decides.
        bound_percent: difference below which both are as good.
        confounded: the arms differ in more than OEA.
    """
    if confounded:
        return "confounded"
    if effect is None or effect.drop_share is None:
        return "better_unexplained" if verdict == "better" else "unknown"
    if effect.drop_share < _FEWER:
        return "better_without" if verdict == "better" else "no_fewer_experts"
    if verdict == "better":
        return "gain" if tpot_off_ms else "better_unexplained"
    if effect.predicted_ms is None or not tpot_off_ms:
        return "unknown"
    if 100 * effect.predicted_ms / tpot_off_ms < bound_percent:
        return "not_expert_bound"  # whatever the verdict will be
    return "unknown" if verdict in ("undecided", "no_verdict") else "router_overhead"


def quality_of(off: Mapping[str, Any], on: Mapping[str, Any]) -> Quality:
    """Compare how likely both arms found the texts of the one with OEA off."""
    parts = [probe.get("quality") or {} for probe in (off, on)]
    for name, part in zip(("off", "on"), parts, strict=True):
        if "logprob_mean" not in part:
            why = part.get("not_measured") or "there is no probe"
            return Quality(None, None, None, None, 0, 0, False, f"OEA {name}: {why}")
    texts = [part["logprob_by_text"] for part in parts]
    pairs = _paired(*texts)
    every = [one for arm in texts for one in arm]
    spread = statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else None
    return Quality(
        off=parts[0]["logprob_mean"],
        on=parts[1]["logprob_mean"],
        difference=parts[1]["logprob_mean"] - parts[0]["logprob_mean"],
        standard_error=spread,
        tokens=parts[1]["tokens"],
        texts=len(pairs),
        # two texts or more: a single one that is as likely in both arms is no sign
        alike=len(pairs) > 1 and max(every) - min(every) <= _ALIKE,
        why_not=None,
    )


def _paired(off: Sequence[float], on: Sequence[float]) -> list[float]:
    return [after - before for before, after in zip(off, on, strict=False)]
