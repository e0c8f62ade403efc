"""The GPUs of this machine as nvidia-smi tells them: which are there, who uses them, what is left.

A GPU is empty when no process computes on it and its memory is not in use. Utilisation is
never asked for: it is stale for seconds after a server has ended.
Standard library only: the warden asks this before and after each server.
"""

from __future__ import annotations

import contextlib
import csv
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node.gpu_processes import compute_processes
from sgmatrix.node.smi import known, number, run_smi, whole

_POLL_S = 0.25
_NAMES_S = 5.0
"""For the names of those who hold memory, once it is known to be held."""

_GPU_FIELDS = ("index", "uuid", "name", "driver_version", "power.limit", "memory.total")
_FAULT = re.compile(r".*\bERR\b.*|\[?Unknown Error\]?|.*requires reset.*", re.IGNORECASE)
_LOST = re.compile(r"GPU is lost|fallen off the bus|Unable to determine the device handle")
_LISTED = re.compile(r"^\s*(?:GPU \d+|MIG) ?.*\(UUID: ((?:GPU|MIG)-[^)]+)\)", re.MULTILINE)

# -- which GPUs there are ------------------------------------------------------------------------


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a MIG part with its card's index; None is what nvidia-smi does not know."""

    index: int | None
    uuid: str | None
    name: str | None
    driver_version: str | None
    power_limit_w: float | None
    memory_total_mib: int | None
    memory_used_mib: int | None
    fault: str | None = None
    """What nvidia-smi says in place of a value when it is the GPU that fails, such as `ERR!`."""

    def __str__(self) -> str:
        number = "?" if self.index is None else self.index
        return f"GPU {number} ({self.uuid})"


@dataclass(frozen=True)
class Inventory:
    """What nvidia-smi lists."""

    gpus: list[Gpu]
    """By index; a MIG part, where it has a row, after its card."""
    lost: list[str]
    """Lines in place of a row, each of a GPU that does not answer."""


def query_gpus(fields: Sequence[str]) -> tuple[list[dict[str, str]], list[str]]:
    """Return a row of texts for each GPU, as they are, and the lines that tell of lost ones.

    Raises:
        SgmatrixError: `gpu_busy` when nvidia-smi is absent, does not answer in time, or fails.
    """
    query = f"--query-gpu={','.join(fields)}"
    text = run_smi([query, "--format=csv,noheader"], lost_ok=True)
    rows, lost = [], []
    for line in text.splitlines():
        row = next(csv.reader([line], skipinitialspace=True), [])
        if len(row) == len(fields) and row[0] != fields[0]:  # no header
            rows.append(dict(zip(fields, map(str.strip, row), strict=True)))
        elif _LOST.search(line):
            lost.append(line.strip())
    return rows, lost


def _gpu(row: Mapping[str, str]) -> Gpu:
    # a power limit of `ERR!` is no more than unknown; a GPU whose memory says so cannot be used
    tells = [text for key, text in row.items() if key != "power.limit" or "reset" in text]
    return Gpu(
        index=whole(row["index"]),
        uuid=known(row["uuid"]),
        name=known(row["name"]),
        driver_version=known(row["driver_version"]),
        power_limit_w=number(row["power.limit"]),
        memory_total_mib=whole(row["memory.total"]),
        memory_used_mib=whole(row["memory.used"]),
        fault=next((text for text in tells if _FAULT.fullmatch(text)), None),
    )


def inventory() -> Inventory:
    """Return the GPUs that nvidia-smi lists, and what it says of those that it lost.

    Raises:
        SgmatrixError: `gpu_busy` when nvidia-smi is absent, does not answer in time, or fails.
    """
    rows, lost = query_gpus((*_GPU_FIELDS, "memory.used"))
    found = sorted(map(_gpu, rows), key=lambda gpu: (gpu.index is None, gpu.index or 0))
    return Inventory(found, lost)


def read_gpus() -> list[Gpu]:
    """Return the GPUs that nvidia-smi lists, by index."""
    return inventory().gpus


def _part_homes(found: Sequence[Gpu]) -> dict[str, str]:
    """Return the UUID of each MIG part and that of its card."""
    homes: dict[str, str] = {}
    cards = {gpu.index: gpu.uuid for gpu in found if not _is_part(gpu.uuid)}
    for gpu in found:
        if gpu.uuid and _is_part(gpu.uuid):
            homes[gpu.uuid] = cards.get(gpu.index) or "?"
    card = "?"
    for uuid in _LISTED.findall(run_smi(["-L"], lost_ok=True)):
        if _is_part(uuid):
            homes[uuid] = card
        else:
            card = uuid
    return homes


def _is_part(uuid: str | None) -> bool:
    return bool(uuid) and str(uuid).startswith("MIG-")


# -- before a server: are they empty? ------------------------------------------------------------


def check_gpus(
    devices: Sequence[str], *, count: int, idle_memory_mib: int
) -> dict[str, int | None]:
    """Refuse GPUs that are not there, fail, or are in use; what uses them is left alone.

    MIG parts of one card are told apart only as far as nvidia-smi does: a process of which it
    names the card alone counts for every part of it.

    Args:
        devices: names of a lease, `gpu-` and an index, a UUID, its beginning, or that of a MIG
            part; others are no GPUs.
        count: how many GPUs this machine has to have.
        idle_memory_mib: memory in use above which a GPU is not empty, whoever holds it.

    Returns:
        Memory in use of each GPU by its UUID, in MiB; None where nvidia-smi does not know it.

    Raises:
        SgmatrixError: `gpu_busy`, with the cause.
    """
    wanted = [name.removeprefix("gpu-").strip() for name in devices if name.startswith("gpu-")]
    if not wanted:
        return {}
    there = inventory()
    homes = _part_homes(there.gpus)
    numbers = {gpu.uuid: gpu.index for gpu in there.gpus}
    parts = [  # that have no row of their own; nobody knows their memory
        Gpu(numbers.get(card), uuid, "MIG part", None, None, None, None)
        for uuid, card in homes.items()
        if uuid not in numbers
    ]
    found = [*there.gpus, *parts]
    _check_count(there, found, homes, count)
    chosen = [_find(name, found, there.lost) for name in wanted]
    for gpu in chosen:
        _check_usable(gpu, homes)
    uuids = {str(gpu.uuid): str(gpu) for gpu in chosen}
    if len(uuids) < len(chosen):
        raise _refused(f"{','.join(wanted)} names one GPU twice", "correct CUDA_VISIBLE_DEVICES")
    places = uuids | {homes[uuid]: name for uuid, name in uuids.items() if uuid in homes}
    if users := compute_processes(places):
        said = [f"{places.get(str(one.gpu_uuid), 'a GPU')} is used by {one}" for one in users]
        raise _refused("; ".join(said), "end those processes, or let the campaign use other GPUs")
    full = [
        f"{gpu}: {gpu.memory_used_mib} MiB in use although no process is to be seen, "
        f"allowed: {idle_memory_mib}"
        for gpu in chosen
        if gpu.memory_used_mib is not None and gpu.memory_used_mib > idle_memory_mib
    ]
    if full:
        raise _refused(
            "; ".join(full),
            "end what holds it (another container, a process that does not die), "
            "or raise node.idle_memory_mib",
        )
    return {str(gpu.uuid): gpu.memory_used_mib for gpu in chosen}


def _refused(facts: str, fix: str) -> SgmatrixError:
    return SgmatrixError("gpu_busy", facts, fix=fix)


def _lost(lines: Sequence[str]) -> str:
    return f"; nvidia-smi: {'; '.join(lines)}" if lines else ""


def _check_count(
    there: Inventory, found: Sequence[Gpu], homes: Mapping[str, str], count: int
) -> None:
    """Refuse a machine with fewer GPUs than it is to have; a split card counts by its parts."""
    whole = [gpu for gpu in found if gpu.uuid not in homes.values()]
    if len(whole) >= count:
        return
    numbers = [gpu.index for gpu in there.gpus if not _is_part(gpu.uuid)]
    names = ", ".join("?" if number is None else str(number) for number in numbers) or "none"
    missing = ", ".join(str(number) for number in range(count) if number not in numbers)
    raise _refused(
        f"{len(whole)} of {count} GPUs are there: {names}"
        + (f"; not there: {missing}" if missing and not homes else "")
        + _lost(there.lost),
        "reset the lost GPU or reboot the node, or lower node.gpus",
    )


def _find(name: str, found: Sequence[Gpu], lost: Sequence[str]) -> Gpu:
    """Return the GPU of an entry of CUDA_VISIBLE_DEVICES: index, UUID, or its beginning."""
    if name.isdecimal():
        hits = [gpu for gpu in found if gpu.index == int(name) and not _is_part(gpu.uuid)]
    else:
        hits = [gpu for gpu in found if name and gpu.uuid == name] or [
            gpu for gpu in found if len(name) > 4 and (gpu.uuid or "").startswith(name)
        ]
    if len(hits) == 1:
        return hits[0]
    there = ", ".join(map(str, found)) or "none"
    what = "does not exist" if not hits else f"may be any of {', '.join(map(str, hits))}"
    raise _refused(
        f"GPU {name} {what}; there are: {there}{_lost(lost)}",
        "correct node.gpus or CUDA_VISIBLE_DEVICES",
    )


def _check_usable(gpu: Gpu, homes: Mapping[str, str]) -> None:
    if gpu.fault or gpu.uuid is None:
        raise _refused(
            f"{gpu} does not work: nvidia-smi says {gpu.fault or 'no UUID'}",
            "reset the GPU (nvidia-smi --gpu-reset) or reboot the node",
        )
    if parts := [part for part, card in homes.items() if card == gpu.uuid]:
        raise _refused(
            f"{gpu} is split into MIG parts that the campaign does not name: {', '.join(parts)}",
            "name the parts in CUDA_VISIBLE_DEVICES, or switch MIG off",
        )


# -- after a server: are they empty again? -------------------------------------------------------


@dataclass(frozen=True)
class Drained:
    """Whether the memory of a server came back."""

    ok: bool
    used_mib: dict[str, int | None]
    """What is in use at the end, by UUID; None where it could not be seen."""
    waited_s: float
    detail: str = ""
    """What is still held, and by whom."""
    before_mib: Mapping[str, int | None] = field(default_factory=dict)

    def memory_mib(self) -> dict[str, list[int | None]]:
        """Return the memory in use before and after, by UUID."""
        return {uuid: [before, self.used_mib.get(uuid)] for uuid, before in self.before_mib.items()}


def lock_names(devices: Sequence[str]) -> dict[str, str]:
    """Return the one name of each device, by its index, however it is called.

    Where nvidia-smi does not know a device, or does not answer, it keeps the name that it has;
    `check_gpus` refuses it then.
    """
    names = {name: name for name in devices}
    called = [name.removeprefix("gpu-") for name in devices if name.startswith("gpu-")]
    if all(name.isdecimal() for name in called):
        return names
    with contextlib.suppress(SgmatrixError):
        there = inventory()
        for name in called:
            with contextlib.suppress(SgmatrixError):
                found = _find(name, there.gpus, there.lost)
                if not _is_part(name) and found.index is not None:
                    names[f"gpu-{name}"] = f"gpu-{found.index}"
    return names


def used_mib(uuids: Collection[str]) -> int | None:
    """Return the memory in use on those GPUs together; None where nvidia-smi does not say."""
    try:
        return sum(gpu.memory_used_mib or 0 for gpu in read_gpus() if gpu.uuid in uuids)
    except SgmatrixError:
        return None


def await_drained(
    baseline: Mapping[str, int | None], *, tolerance_mib: int = 256, deadline_s: float
) -> Drained:
    """Look at the GPUs until each is as empty as it was, or the deadline passes.

    Where nvidia-smi does not know a GPU's memory, it is empty when no process computes on it.

    Args:
        baseline: what `check_gpus` returned; empty for the CPU, which is drained at once.
        tolerance_mib: memory above the baseline that is no remnant; less than a CUDA context,
            some 400 MiB, so that no process hides in it.
        deadline_s: no look begins later; the last one may take as long as nvidia-smi may.
    """
    if not baseline:
        return Drained(True, {}, 0.0)
    started = time.monotonic()
    while True:
        used, held = _look(baseline, tolerance_mib)
        waited_s = time.monotonic() - started
        if not held:
            return Drained(True, used, waited_s, before_mib=baseline)
        if waited_s >= deadline_s:
            break
        time.sleep(min(_POLL_S, deadline_s - waited_s))  # between looks; a look is the proof
    if seen := [uuid for uuid, before in baseline.items() if before is not None]:
        with contextlib.suppress(SgmatrixError):  # it helps to know, but changes nothing
            held += [f"held by {one}" for one in compute_processes(seen, _NAMES_S)]
    detail = f"GPU memory not back after {waited_s:.1f} s: {'; '.join(held)}"
    return Drained(False, used, waited_s, detail, baseline)


def _look(
    baseline: Mapping[str, int | None], tolerance_mib: int
) -> tuple[dict[str, int | None], list[str]]:
    """Return the memory in use, and what speaks against the GPUs being empty."""
    used: dict[str, int | None] = dict.fromkeys(baseline)
    held: list[str] = []
    try:
        there = inventory()
        rows = {gpu.uuid: gpu for gpu in there.gpus}
        used |= {uuid: rows[uuid].memory_used_mib for uuid in baseline if uuid in rows}
        blind = [uuid for uuid, before in baseline.items() if before is None]
        homes = _part_homes(there.gpus) if any(map(_is_part, blind)) else {}
        for uuid, before in baseline.items():
            now = used[uuid]
            if uuid not in rows and uuid not in homes:
                held.append(f"GPU {uuid} is not there any more{_lost(there.lost)}")
            elif before is not None and now is None:
                held.append(f"{rows[uuid]} does not say what is in use")
            elif before is not None and now is not None and now > before + tolerance_mib:
                held.append(f"{rows[uuid]} holds {now} MiB, {before} before the server")
        places = {*blind, *(homes[uuid] for uuid in blind if uuid in homes)}
        if blind:
            held += [f"GPU {one.gpu_uuid} is used by {one}" for one in compute_processes(places)]
    except SgmatrixError as error:
        held.append(error.facts)
    return used, held
