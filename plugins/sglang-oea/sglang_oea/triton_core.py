"""The core of one Triton launch: simplified OEA for softmax and for sigmoid + bias + groups.

It runs after the engine's own gate and uses its ids (as a set: the order of the columns is
never used) and the router's logits:
  rank of a column = how many of the row's k columns rank before it (equal: lower id first);
  S_base = union over all rows of the experts with rank < k0;
  a row's result = its own k0 best, then the best ranked others inside S_base.
Every program (one row) builds the union itself: no second launch, no memory to clear.

Traps  A kernel with `tl.histogram` after 3-D reshapes was wrong on a GPU (Triton 3.6.0) and
       right in Triton's interpreter. So: the union is E/32 words, OR-reduced, and nothing has
       more than two dimensions; the interpreter proves nothing, device/check.py does.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from sglang_oea.router import Router
from sglang_oea.settings import Settings

TILES = ((16, 16, 1), (32, 32, 1), (1 << 30, 64, 2))
"""(rows of a step up to which it serves, rows of a tile, warps): the fastest of six on an H200."""
FILL = {"repeat": 0, "mask": 1, "distinct": 2}
SCORINGS = ("softmax", "sigmoid")


def cannot_serve(router: Router, settings: Settings) -> str | None:
    """Return why this core cannot serve a router or a setting; None where it can."""
    if not settings.simplified:
        return "the general form (OEA_K_MAX, OEA_P, OEA_MAX_RANK)"
    if router.scoring not in SCORINGS:
        return f"the scoring function {router.scoring}"
    if router.biased and router.scoring != "sigmoid":
        return f"a correction bias with {router.scoring}"
    return None


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _key(logit, bias_ptr, expert, live, BIASED: tl.constexpr):
    """By what an expert is ranked: its logit, or its score plus its bias."""
    if BIASED:
        bias = tl.load(bias_ptr + expert, mask=live, other=0.0).to(tl.float32)
        return _sigmoid(logit) + bias
    return logit


@triton.jit
def _in_allowed_group(
    keys, e, E: tl.constexpr, GROUPS: tl.constexpr, TOP_GROUPS: tl.constexpr,
    SIZE: tl.constexpr, BIASED: tl.constexpr, GP: tl.constexpr,
):  # fmt: skip
    """1 where an expert lies in one of the row's allowed groups, [E] int32."""
    never = float("-inf")
    g = tl.arange(0, GP)
    strength = tl.full([GP], never, tl.float32)
    for i in tl.static_range(GROUPS):
        inside = (e >= i * SIZE) & (e < (i + 1) * SIZE)
        part = tl.where(inside, keys, never)
        best = tl.max(part, axis=0)
        total = best
        if BIASED:
            first = tl.min(tl.where(part == best, e, E), axis=0)
            total = best + tl.max(tl.where(e == first, never, part), axis=0)
        strength = tl.where(g == i, total, strength)
    allowed = tl.zeros([E], tl.int32)
    for i in tl.static_range(GROUPS):
        mine = tl.max(tl.where(g == i, strength, never), axis=0)
        before = (strength > mine) | ((strength == mine) & (g < i))
        rank = tl.sum(tl.where(before, 1, 0), axis=0)
        inside = (e >= i * SIZE) & (e < (i + 1) * SIZE)
        allowed = tl.where(inside & (rank < TOP_GROUPS), 1, allowed)
    return allowed


@triton.jit(do_not_specialize=["n"])
def _oea_kernel(
    ids_ptr, w_ptr, logit_ptr, bias_ptr, valid_ptr, out_ids_ptr, out_w_ptr, count_ptr, n,
    stride_ids, stride_w, stride_l,
    NE: tl.constexpr, E: tl.constexpr, K: tl.constexpr, W: tl.constexpr, WP: tl.constexpr,
    K0: tl.constexpr, SIGMOID: tl.constexpr, BIASED: tl.constexpr, RENORM: tl.constexpr,
    GROUPS: tl.constexpr, TOP_GROUPS: tl.constexpr, GP: tl.constexpr,
    FILL: tl.constexpr, HAS_VALID: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    never = float("-inf")
    row = tl.program_id(0)
    rows = n
    if HAS_VALID:
        rows = tl.minimum(tl.load(valid_ptr).to(tl.int32), n)
    if row == 0:
        tl.atomic_add(count_ptr, 1, sem="relaxed")
        tl.atomic_add(count_ptr + 1, rows.to(tl.int64), sem="relaxed")
    cols = tl.arange(0, WP)
    e = tl.arange(0, E)

    # S_base. In a tile of rows: each column's key, its rank within the row, the union's bits.
    in_base = tl.zeros([E], tl.int32)
    for start in range(0, rows, BT):
        r = start + tl.arange(0, BT)
        asked = (r < rows)[:, None] & (cols < K)[None, :]
        ids = tl.load(ids_ptr + r[:, None] * stride_ids + cols[None, :], mask=asked, other=-1)
        ids = ids.to(tl.int32)
        known = asked & (ids >= 0) & (ids < NE)
        at = r[:, None] * stride_l + ids
        key = _key(
            tl.load(logit_ptr + at, mask=known, other=0.0).to(tl.float32),
            bias_ptr, ids, known, BIASED,
        )  # fmt: skip
        key = tl.where(known, key, never)
        rank = tl.zeros([BT, WP], tl.int32)
        for j in tl.static_range(K):
            # Loaded again, a column a time: it lies in the cache, and takes no reduction.
            id_j = tl.load(ids_ptr + r * stride_ids + j, mask=r < rows, other=-1).to(tl.int32)
            known_j = (id_j >= 0) & (id_j < NE)
            l_j = tl.load(logit_ptr + r * stride_l + id_j, mask=known_j, other=0.0).to(tl.float32)
            key_j = tl.where(known_j, _key(l_j, bias_ptr, id_j, known_j, BIASED), never)[:, None]
            before_j = (key_j > key) | ((key_j == key) & (id_j[:, None] < ids))
            rank += tl.where(before_j, 1, 0)
        whole = tl.sum(tl.where(known, 1, 0), axis=1) == K  # else masked by the engine already
        base = known & (rank < K0) & whole[:, None]
        for q in tl.static_range(E // 32):
            bit = tl.full([BT, WP], 1, tl.int32) << (ids & 31)
            bits = tl.where(base & ((ids >> 5) == q), bit, 0)
            word = tl.reduce(tl.reduce(bits, 1, _or), 0, _or)
            in_base |= tl.where((e >> 5) == q, (word >> (e & 31)) & 1, 0)

    # This row: its own columns, ranked in the same way.
    own_ids = tl.load(ids_ptr + row * stride_ids + cols, mask=cols < W, other=-1)
    own_w = tl.load(w_ptr + row * stride_w + cols, mask=cols < W, other=0.0)
    mine_id = own_ids.to(tl.int32)
    known = (cols < K) & (mine_id >= 0) & (mine_id < NE)
    own_l = tl.load(logit_ptr + row * stride_l + mine_id, mask=known, other=0.0).to(tl.float32)
    own_key = tl.where(known, _key(own_l, bias_ptr, mine_id, known, BIASED), never)
    before = (own_key[None, :] > own_key[:, None]) | (
        (own_key[None, :] == own_key[:, None]) & (mine_id[None, :] < mine_id[:, None])
    )
    own_rank = tl.sum(tl.where(before & known[None, :], 1, 0), axis=1)
    own_base = known & (own_rank < K0)
    best_id = tl.sum(tl.where(known & (own_rank == 0), mine_id, 0), axis=0)
    engine_sum = tl.sum(tl.where(known, own_w.to(tl.float32), 0.0), axis=0)
    hit = (e[:, None] == mine_id[None, :]) & own_base[None, :]
    mine = tl.sum(tl.where(hit, 1, 0), axis=1) > 0

    logit = tl.load(logit_ptr + row * stride_l + e, mask=e < NE, other=never).to(tl.float32)
    keys = tl.where(e < NE, _key(logit, bias_ptr, e, e < NE, BIASED), never)
    if TOP_GROUPS < GROUPS:
        allowed = _in_allowed_group(keys, e, E, GROUPS, TOP_GROUPS, NE // GROUPS, BIASED, GP)
        keys = tl.where(allowed > 0, keys, never)
    top = tl.max(tl.where(known, own_l, never), axis=0)
    if SIGMOID:
        score = _sigmoid(logit)
        own_score = _sigmoid(own_l)
    else:
        score = tl.exp(logit - top)
        own_score = tl.exp(own_l - top)
    own_total = tl.sum(tl.where(known, own_score, 0.0), axis=0)

    want = tl.where(in_base > 0, keys, never)
    want = tl.where(mine, float("inf"), want)
    # Experts out of reach may still fill a slot, as the last; -inf is for those taken.
    spare = tl.where(e < NE, tl.maximum(keys, -3.0e38), never)
    new_ids = tl.zeros([WP], tl.int32)
    new_w = tl.zeros([WP], tl.float32)
    for j in tl.static_range(K):
        m = tl.max(want, axis=0)
        ok = m > never
        i = tl.min(tl.where(want == m, e, E), axis=0)
        s = tl.sum(tl.where(e == i, score, 0.0), axis=0)
        other = best_id
        if FILL == 1:
            other = best_id * 0 - 1
        if FILL == 2:
            left = tl.max(spare, axis=0)
            other = tl.min(tl.where(spare == left, e, E), axis=0)
        pick = tl.where(ok, i, other)
        new_ids = tl.where(cols == j, pick, new_ids)
        new_w = tl.where(cols == j, tl.where(ok, s, 0.0), new_w)
        want = tl.where(e == pick, never, want)
        if FILL == 2:
            spare = tl.where(e == pick, never, spare)
    total = own_total
    if RENORM:
        total = tl.sum(new_w, axis=0)
    new_w = new_w * (engine_sum / (total + 1e-20))

    changed = (cols < K) & (row < rows) & (tl.sum(tl.where(known, 1, 0), axis=0) == K)
    out = row * W + cols
    tl.store(
        out_ids_ptr + out, tl.where(changed, new_ids.to(own_ids.dtype), own_ids), mask=cols < W
    )
    tl.store(out_w_ptr + out, tl.where(changed, new_w.to(own_w.dtype), own_w), mask=cols < W)


def reroute(
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    ids: torch.Tensor,
    weights: torch.Tensor,
    valid: torch.Tensor | None,
    counter: torch.Tensor,
    *,
    router: Router,
    settings: Settings,
    fill: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids and weights of OEA, with arguments and results as in `eager.reroute`.

    `counter`, [2] int64 on the device, gets one more call and the tokens of it from the launch
    itself, so that a replayed graph counts.
    """
    n, columns = ids.shape
    if not n:
        return ids, weights
    logits, ids, weights = (
        x if x.stride(1) == 1 else x.contiguous() for x in (logits, ids, weights)
    )
    out_ids = torch.empty((n, columns), dtype=ids.dtype, device=ids.device)
    out_weights = torch.empty((n, columns), dtype=weights.dtype, device=weights.device)
    tile, warps = next((rows, warps) for most, rows, warps in TILES if n <= most)
    _oea_kernel[(n,)](
        ids, weights, logits,
        logits if bias is None else bias,
        counter if valid is None else valid,
        out_ids, out_weights, counter, n,
        ids.stride(0), weights.stride(0), logits.stride(0),
        NE=router.experts, E=max(32, triton.next_power_of_2(router.experts)),
        K=router.top_k, W=columns, WP=triton.next_power_of_2(columns), K0=settings.k0,
        SIGMOID=router.scoring == "sigmoid", BIASED=router.biased, RENORM=router.renormalize,
        GROUPS=router.groups, TOP_GROUPS=router.top_groups,
        GP=triton.next_power_of_2(router.groups), FILL=FILL[fill], HAS_VALID=valid is not None,
        BT=tile, num_warps=warps,
    )  # fmt: skip
    return out_ids, out_weights
