"""What one run of the chaos suite does, drawn from a seed: the campaign, the fault, its moment."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

# A phase is the last event of the campaign's own log before the fault is made.
PHASES = ("begin", "starting", "ready", "warmup", "point", "point_done", "stopping", "launch_done")

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGSTOP")
TARGETS = ("snakemake", "job", "warden", "server", "escaped", "client")

# What a server can do by itself; each is a result, not a disturbance: (fault, reasons it may give).
SERVER_FAULTS = {
    "die_before_ready": ("server_crash",),
    "die_after:1": ("server_crash",),
    "die_after:4": ("server_crash",),
    "oom_kv": ("oom_kv_init",),
    "oom_runtime:3": ("oom_runtime",),
    "scheduler_dies_after:2": ("server_crash",),
    "never_opens_port": ("start_stalled", "start_timeout"),
    "hang_stream:3": ("client_timeout",),
    "ignore_sigterm": (),
}


@dataclass(frozen=True)
class Scenario:
    """One run."""

    seed: int
    kind: str
    """`signal`, `port`, `disk` or `server`."""
    target: str
    signal: str
    phase: str
    which: int
    """The how-manieth event of that phase."""
    delay_s: float
    """From that event to the fault."""
    stopped_s: float
    """How long a SIGSTOP lasts; 0: for ever."""
    whole_group: bool
    """A signal to snakemake goes to its process group, as Ctrl-C does."""
    server_fault: str
    launches: int
    waves: int
    escaped: bool
    """Whether each server leaves a child that changes its session and ignores SIGTERM."""
    profile: str
    engine: str = "standin"
    """`standin`, or `sglang-cpu`, the real engine."""

    def __str__(self) -> str:
        what = {
            "signal": f"{self.signal} to {self.target}"
            + (" group" if self.whole_group and self.target == "snakemake" else "")
            + (f" for {self.stopped_s:g} s" if self.signal == "SIGSTOP" else ""),
            "port": "a thief takes the port",
            "disk": "the disk is full",
            "server": self.server_fault,
        }[self.kind]
        moment = "" if self.kind == "server" else f" {self.delay_s:.2f} s after {self.phase}"
        where = self.profile if self.engine == "standin" else f"{self.profile}, {self.engine}"
        return f"seed {self.seed}, {where}: {what}{moment}"


def draw_real(seed: int, profile: str = "default") -> Scenario:
    """Return the scenario of a seed on the real engine: signals only, at longer moments."""
    rng = random.Random(seed)
    one = draw(seed, profile)
    return replace(
        one,
        kind="signal",
        target=rng.choice((*TARGETS[:4], "client", "worker")),
        signal=rng.choice(SIGNALS),
        phase=rng.choice(("starting", "ready", "warmup", "point", "stopping")),
        which=1,
        delay_s=rng.uniform(0, 6),
        stopped_s=3.0,
        launches=1,
        waves=0,
        escaped=False,
        engine="sglang-cpu",
    )


def draw(seed: int, profile: str = "default") -> Scenario:
    """Return the scenario of a seed."""
    rng = random.Random(seed)
    kind = rng.choices(("signal", "server", "port", "disk"), weights=(14, 3, 2, 1))[0]
    target = rng.choices(TARGETS, weights=(4, 3, 3, 3, 1, 2))[0]
    return Scenario(
        seed=seed,
        kind=kind,
        target=target,
        signal=rng.choice(SIGNALS),
        phase=rng.choice(PHASES),
        which=rng.choice((1, 1, 2)),
        delay_s=rng.choice((0.0, rng.uniform(0, 0.3), rng.uniform(0, 2))),
        stopped_s=rng.choice((0.5, 2.0, 4.0)),
        whole_group=rng.random() < 0.5,
        server_fault=rng.choice(tuple(SERVER_FAULTS)),
        launches=rng.choice((1, 1, 2)),
        waves=rng.choice((0, 1)),
        escaped=kind != "server" and (rng.random() < 0.5 or target == "escaped"),
        profile=profile,
    )
