"""From a server log to a reason class: the first fatal line is the root, noise is counted.

Rules are data. The order of the rules does not matter, the order of the lines does: what a
dying server prints last is seldom why it died.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")
_READ_BYTES = 8 * 1024 * 1024
"""Of the start of a log, and of its end; what lies between in a huge one is only counted."""
_LINE_LIMIT = 500

# name -> pattern of a line that looks bad and is not; such lines are counted and passed over.
HARMLESS: dict[str, re.Pattern[str]] = {
    "autotune_skipped": re.compile(
        r"(autotun|tactic).*(fail|skip)|Failed to initialize cutlass", re.IGNORECASE
    ),
    "import_ignored": re.compile(r"Ignore import error when loading"),
}

# (reason class, pattern) of lines that end a server.
FATAL: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "config_rejected",
        re.compile(
            r"\berror: (unrecognized arguments|argument |the following arg|ambiguous)",
            re.IGNORECASE,
        ),
    ),
    (
        "oom_kv_init",
        re.compile(
            r"Not enough memory.*mem.fraction|No available memory for the cache|"
            r"KV cache.*(larger|exceed)",
            re.IGNORECASE,
        ),
    ),
    ("oom_weights", re.compile(r"OutOfMemoryError.*(?=load)|out of memory.*weight", re.IGNORECASE)),
    (
        "oom_runtime",
        re.compile(
            r"OutOfMemoryError|CUDA out of memory|DefaultCPUAllocator: can't allocate|"
            r"\bMemoryError\b",
            re.IGNORECASE,
        ),
    ),
    (
        "kernel_unsupported",
        re.compile(
            r"no kernel image|is not supported (on|for) (this|compute)|"
            r"unsupported (arch|compute cap)",
            re.IGNORECASE,
        ),
    ),
    (
        "nccl_error",
        re.compile(
            r"NCCL (error|WARN .*(fail|error))|ncclSystemError|ncclUnhandled", re.IGNORECASE
        ),
    ),
    (
        "port_in_use",
        re.compile(r"address already in use|port \d+ .*(is|already) (in use|used)", re.IGNORECASE),
    ),
)

# Lines that are the root of a crash when no rule above names it better.
_EXCEPTION = re.compile(
    r"^(?:\[[^\]]*\]\s*)?(?:[A-Za-z_][\w.]*\.)?"
    r"(?:[A-Z]\w*(?:Error|Exception|Interrupt)|Exception)\b(?:: .*)?$|"
    r"Segmentation fault|Fatal Python error|terminate called after"
)

# What has found room when memory ends: which class an out-of-memory line is of.
_WEIGHTS_LOADED = re.compile(r"Load weight end|load_weight.*end", re.IGNORECASE)
_POOL_ALLOCATED = re.compile(r"KV Cache is allocated|Memory pool end", re.IGNORECASE)


@dataclass(frozen=True)
class Triage:
    """What a log says."""

    reason: str | None
    """Reason class; None when no line is fatal."""
    root_line: str | None
    line_number: int | None
    """Counted from 1, as an editor does."""
    harmless: dict[str, int]


def clean_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a log; a progress bar is a line for each step.

    Decoding is tolerant, escape codes are taken out. A log that is not there has no lines.
    """
    if not path.is_file():
        return
    size, place = path.stat().st_size, 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            place += len(raw)
            if _READ_BYTES < place <= size - _READ_BYTES:
                continue
            for part in raw.decode("utf-8", errors="replace").split("\r"):
                yield number, _ANSI.sub("", part)[:_LINE_LIMIT].rstrip()


def triage(path: Path) -> Triage:
    """Find the root of a server's end in its log."""
    harmless: dict[str, int] = {}
    named: tuple[str, str, int] | None = None
    crash: tuple[str, str, int] | None = None
    out_of_memory = "oom_weights"
    for number, line in clean_lines(path):
        noise = next((name for name, pattern in HARMLESS.items() if pattern.search(line)), None)
        if noise:
            harmless[noise] = harmless.get(noise, 0) + 1
            continue
        if _POOL_ALLOCATED.search(line):
            out_of_memory = "oom_runtime"
        elif out_of_memory == "oom_weights" and _WEIGHTS_LOADED.search(line):
            out_of_memory = "oom_kv_init"
        if named is None:
            reason = next((name for name, pattern in FATAL if pattern.search(line)), None)
            if reason == "oom_runtime":
                reason = out_of_memory
            if reason:
                named = (reason, line.strip(), number)
        if crash is None and _EXCEPTION.search(line):
            crash = ("server_crash", line.strip(), number)
    # An exception that comes before a named line is the root of it, unless it is that line.
    found = min((hit for hit in (named, crash) if hit), key=lambda hit: hit[2], default=None)
    if named and crash and named[2] == crash[2]:
        found = named
    if found is None:
        return Triage(None, None, None, harmless)
    return Triage(found[0], found[1], found[2], harmless)
