"""Is a core right, here, on this device and these shapes? And is the router read rightly?

A core with wrong results looked healthy in every other way: the server was up, the hook was
called, times were plausible. Only a comparison on the device itself shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from sglang_oea.cases import KINDS, Case, make_case
from sglang_oea.cores import Core, new_counter
from sglang_oea.eager import NEVER, ranking_of, weighing
from sglang_oea.reference import reference
from sglang_oea.router import Router
from sglang_oea.settings import Settings

WEIGHT_ERROR = 2e-5
"""Largest difference of a weight from the reference's, relative to the row's sum."""

BF16 = 2.0**-7
"""Rounding of a gate that computes in bfloat16, relative."""


@dataclass(frozen=True)
class Checked:
    """What was compared. `ok` is None before anything was."""

    ok: bool | None = None
    cases: int = 0
    shapes: list[int] = field(default_factory=list)
    max_weight_error: float | None = None
    problem: str | None = None

    def as_record(self) -> dict[str, Any]:
        """Return it as a proof shows it."""
        return asdict(self)

    def and_then(self, later: Checked) -> Checked:
        """Return both together."""
        errors = [x.max_weight_error for x in (self, later) if x.max_weight_error is not None]
        return Checked(
            ok=bool(later.ok and self.ok is not False),
            cases=self.cases + later.cases,
            shapes=sorted({*self.shapes, *later.shapes}),
            max_weight_error=max(errors, default=None),
            problem=self.problem or later.problem,
        )


def sizes_up_to(most: int) -> list[int]:
    """Return batch sizes from 1 to `most`: all up to 4, then around the powers of two to 256."""
    sizes = {1, 2, 3, 4, most}
    power = 8
    while power <= min(most, 256):
        sizes |= {power - 1, power} if power > 64 else {power - 1, power, power + 1}
        power *= 2
    return sorted(size for size in sizes if 1 <= size <= most)


def compare(core: Core, case: Case) -> tuple[str | None, float]:
    """Return how a core differs from the reference on a case (None: it does not), and its error.

    The error is the largest difference of a weight, relative to the sum of its row.
    """
    counter = new_counter(case.ids.device)
    ids, weights = core(case.logits, case.bias, case.ids, case.weights, case.valid, counter)
    wanted = reference(case.rows, core.router, core.settings, core.fill)
    n, k = len(case.rows.ids), core.router.top_k
    got_ids, got_weights = ids.tolist(), weights.double().tolist()
    worst = 0.0
    for i, want in enumerate(wanted):
        where = f"{case.kind}, row {i} of {n}"
        if want is None or core.router.shared:
            start = 0 if want is None else k
            same = torch.equal(ids[i, start:], case.ids[i, start:])
            if not same or not torch.equal(weights[i, start:], case.weights[i, start:]):
                return f"{where}: columns that must stay were changed", worst
        if want is None:
            continue
        if not all(math.isfinite(weight) for weight in got_weights[i]):
            return f"{where}: a weight is not finite", worst
        pairs = sorted(zip(got_ids[i][:k], got_weights[i][:k], strict=True))
        empty = [0.0] * len(want.spare)
        asked = sorted(zip([*want.experts, *want.spare], [*want.weights, *empty], strict=True))
        if [j for j, _ in pairs] != [j for j, _ in asked]:
            got, must = [j for j, _ in pairs], [j for j, _ in asked]
            return f"{where}: experts {got}, must be {must}", worst
        whole = max(sum(want.weights), 1e-30)
        error = max(abs(a - b) for (_, a), (_, b) in zip(pairs, asked, strict=True)) / whole
        worst = max(worst, error)
        if not error < WEIGHT_ERROR:
            return f"{where}: a weight is off by {error:.1e} of its row's sum", worst
    counts = counter.tolist()
    if counts != [1, case.rows.valid]:
        return f"{case.kind}, {n} rows: counted {counts}, must be {[1, case.rows.valid]}", worst
    return None, worst


def check_core(
    core: Core, sizes: Iterable[int], *, dtype: torch.dtype, device: torch.device | str
) -> Checked:
    """Compare a core with the reference on each size: spread logits, and ties or extremes.

    Args:
        core: bound to the router and the settings that will be used.
        sizes: rows of a step.
        dtype: of the engine's logits.
        device: of the core.

    Returns:
        What was compared; it stops at the first difference.
    """
    return check_cases(core, cases_for(core.router, core.settings, sizes, dtype, device))


def cases_for(
    router: Router,
    settings: Settings,
    sizes: Iterable[int],
    dtype: torch.dtype,
    device: torch.device | str,
) -> Iterator[Case]:
    """Yield two cases of each size, every second size with padding; of the settings p counts."""
    for turn, n in enumerate(sizes):
        for kind in ("spread", KINDS[1 + turn % 2]):
            padded = n // 3 if turn % 2 and kind != "spread" else 0
            yield make_case(
                kind, n, router, settings, dtype=dtype, device=device, seed=turn, padded=padded
            )


def check_cases(core: Core, cases: Iterable[Case]) -> Checked:
    """Compare a core with the reference on cases of its own router and p."""
    worst, count, done = 0.0, 0, set()
    for case in cases:
        problem, error = compare(core, case)
        worst, count = max(worst, error), count + 1
        done.add(len(case.rows.ids))
        if problem is not None:
            return Checked(False, count, sorted(done), worst, problem)
    return Checked(True, count, sorted(done), worst)


def misread(
    router: Router,
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    ids: torch.Tensor,
    weights: torch.Tensor,
) -> str | None:
    """Return how the engine's own choice contradicts the router as it was read; None if not.

    The engine's experts must be among the best ranked, and its weights in proportion to their
    scores, both within bfloat16 rounding. Shapes as in `eager.reroute`; it waits for the device.
    """
    k = router.top_k
    own = ids[:, :k].long()
    finite = logits.float().isfinite().all(-1) & weights[:, :k].isfinite().all(-1)
    sound = ((own >= 0) & (own < router.experts)).all(-1) & finite
    own = own.clamp(0, router.experts - 1)
    keys = ranking_of(logits, bias, router)
    kth = keys.topk(k, dim=-1).values[:, -1:]
    open_keys = ranking_of(logits, bias, _ungrouped(router)) if router.grouped else keys
    reach = open_keys.gather(1, own)
    room = BF16 * open_keys.abs().clamp(min=1.0).amax(-1, keepdim=True)
    if router.grouped:
        # A group chosen by rounding is no misreading: its experts need not reach the k-th key.
        reach = torch.where(keys.gather(1, own) == NEVER, kth, reach)
    ranked = (reach >= kth - room).all(-1) | ~sound
    if not bool(ranked.all()):
        return "the engine chose experts that are not the best ranked of its router"
    expected = weighing(logits, own, own, router.scoring)
    expected = expected / expected.sum(-1, keepdim=True).clamp(min=1e-20)
    given = weights[:, :k].float()
    total = given.sum(-1, keepdim=True)
    off = (given / total.where(total != 0, torch.ones_like(total)) - expected).abs().amax(-1)
    # A logit's rounding of 2^-8 of its size changes an exponential by as much again.
    slack = BF16 * logits.float().abs().amax(-1).clamp(min=4.0)
    heavy = sound & (total.squeeze(1) != 0)
    if bool((heavy & (off > slack)).any()):
        return "the engine's weights are not in proportion to the scores of its router"
    return None


def _ungrouped(router: Router) -> Router:
    return Router(router.experts, router.top_k, router.scoring, router.biased)
