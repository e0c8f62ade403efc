"""Parallelism bundles: `tp8`, `tp4pp2`, `tp8ep8`, `dp8ep8` as SGLang's own flags."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sgmatrix.core.errors import SgmatrixError

_BUNDLE = re.compile(
    r"(?:tp(?P<tp>0|[1-9]\d*))?(?:pp(?P<pp>0|[1-9]\d*))?(?:dp(?P<dp>0|[1-9]\d*))?(?:ep(?P<ep>0|[1-9]\d*))?"
)


def parallelism_flags(bundle: str) -> dict[str, int | bool]:
    """Return the server flags of a bundle.

    `tp8` shards over 8 GPUs, `tp4pp2` over 4 x 2, `tp8ep8` spreads the experts over the 8,
    `tp2dp2` runs 2 replicas of 2, and `dp8ep8` is DP attention over 8 with the experts spread.

    Raises:
        SgmatrixError: `config_rejected` when it is not such a word or a number in it is 0.
    """
    match = _BUNDLE.fullmatch(bundle)
    sizes = {name: int(text) for name, text in match.groupdict().items() if text} if match else {}
    if not sizes or 0 in sizes.values():
        raise SgmatrixError(
            "config_rejected",
            f"axes.parallelism: {bundle!r} is not a bundle",
            fix="write tp, pp, dp and ep in this order with sizes of 1 or more, such as tp4pp2",
        )
    if "dp" in sizes and "ep" in sizes:  # DP attention: the replicas share the expert layers
        dp = sizes["dp"]
        attention: dict[str, int | bool] = {
            "tp_size": sizes.get("tp", dp),
            "dp_size": dp,
            "ep_size": sizes["ep"],
            "enable_dp_attention": True,
        }
        return attention | ({"pp_size": sizes["pp"]} if sizes.get("pp", 1) > 1 else {})
    flags: dict[str, int | bool] = {"tp_size": sizes.get("tp", 1)}
    flags |= {f"{name}_size": sizes[name] for name in ("pp", "dp", "ep") if sizes.get(name, 1) > 1}
    return flags


def ranks_of(flags: Mapping[str, int | bool]) -> int:
    """Return how many ranks, and so GPUs, a server with those flags takes."""
    replicas = 1 if flags.get("enable_dp_attention") else int(flags.get("dp_size", 1))
    return int(flags.get("tp_size", 1)) * int(flags.get("pp_size", 1)) * replicas
