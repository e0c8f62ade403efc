"""What the environment asks for. All of it is OEA_*; a name that is unknown is refused.

A typing error would otherwise measure the default and call it something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from sglang_oea.refusal import refuse

KNOWN = (
    "OEA_ENABLE",
    "OEA_K0",
    "OEA_K_MAX",
    "OEA_P",
    "OEA_MAX_RANK",
    "OEA_FILL",
    "OEA_CORE",
    "OEA_STATUS_DIR",
    "OEA_MASK_PADDING",
)
CORES = ("auto", "eager", "triton")
FILLS = ("repeat", "mask", "distinct")

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """The settings of an arm that is on.

    Attributes:
        k0: experts of a token's own choice, at least 1 (the paper's k0).
        k_max: most experts of a token; None: the model's top-k.
        p: share of the router's score that a token's own choice need not exceed, (0, 1].
        max_rank: lowest rank that a token may take from others, the paper's maxP; None: all.
        fill: what a slot holds that no expert is left for; None: by device.
        core: auto, eager or triton.
        status_dir: where proofs are answered; None: nowhere.
        mask_padding: have the engine say which rows are padding.
    """

    k0: int
    k_max: int | None = None
    p: float = 1.0
    max_rank: int | None = None
    fill: str | None = None
    core: str = "auto"
    status_dir: str | None = None
    mask_padding: bool = False

    @property
    def simplified(self) -> bool:
        """Whether only k0 is set: the form that the paper recommends."""
        return self.k_max is None and self.p >= 1.0 and self.max_rank is None

    def as_record(self) -> dict[str, Any]:
        """Return the settings as a proof shows them."""
        return asdict(self)


def read_settings(env: Mapping[str, str]) -> Settings | None:
    """Return what is asked for; None where OEA is off.

    Raises:
        Refused: an unknown name, a value out of range, or OEA_ENABLE=1 without OEA_K0.
    """
    for name in env:
        if name.startswith("OEA_") and name not in KNOWN:
            near = get_close_matches(name, KNOWN, 1)
            refuse(
                f"{name} is not a setting",
                fix=f"write {near[0]}" if near else f"take it out; known: {', '.join(KNOWN)}",
            )
    if not _switch(env, "OEA_ENABLE"):
        return None
    if not env.get("OEA_K0"):
        refuse("OEA_ENABLE=1 without OEA_K0", fix="set OEA_K0, for example to 4")
    k0 = _number(env, "OEA_K0", int, lambda k: k >= 1, "a whole number from 1")
    k_max = _number(env, "OEA_K_MAX", int, lambda k: k >= 1, "a whole number from 1")
    p = _number(env, "OEA_P", float, lambda p: 0 < p <= 1, "over 0, at most 1")
    max_rank = _number(env, "OEA_MAX_RANK", int, lambda k: k >= 1, "a whole number from 1")
    assert k0 is not None
    for name, most in (("OEA_K_MAX", k_max), ("OEA_MAX_RANK", max_rank)):
        if most is not None and most < k0:
            refuse(f"{name}={most} is below OEA_K0={k0}", fix=f"set it to {k0} or more")
    return Settings(
        k0=k0,
        k_max=k_max,
        p=1.0 if p is None else p,
        max_rank=max_rank,
        fill=_one_of(env, "OEA_FILL", FILLS),
        core=_one_of(env, "OEA_CORE", CORES) or "auto",
        status_dir=env.get("OEA_STATUS_DIR") or None,
        mask_padding=_switch(env, "OEA_MASK_PADDING"),
    )


def _switch(env: Mapping[str, str], name: str) -> bool:
    given = env.get(name) or "0"
    if given not in ("0", "1"):
        refuse(f"{name}={given}", fix="write 0 or 1")
    return given == "1"


def _one_of(env: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str | None:
    given = env.get(name) or None
    if given is not None and given not in allowed:
        refuse(f"{name}={given}", fix=f"allowed: {', '.join(allowed)}")
    return given


def _number(
    env: Mapping[str, str],
    name: str,
    kind: Callable[[str], T],
    holds: Callable[[T], bool],
    allowed: str,
) -> T | None:
    given = env.get(name)
    if not given:
        return None
    try:
        value = kind(given)
    except ValueError:
        value = None
    if value is None or not holds(value):
        refuse(f"{name}={given}", fix=f"allowed: {allowed}")
    return value
