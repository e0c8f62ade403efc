"""Time all-reduces between the devices of a node: `allreduce.py BACKEND COUNTS SIZES LIMIT_S`.

    allreduce.py nccl 2,4,8 4096,1048576 60
    {"allreduce_s": {"2": [[4096, 9.1e-06], ...]}, "error": null}

A file of its own, without imports of ours: it is run by the engine's Python, which has torch.
One process per device; a group of the first so many of them reduces bf16 messages, on GPUs
inside a CUDA graph, as an engine does. A number is the median of several rounds, each of the
slowest member. What was measured before a failure, or before the limit, is kept; `error` has
the root line of what failed.
"""

import ctypes
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

ROUNDS = 5
ROUND_BYTES = 512 << 20
"""A round repeats a message until so many bytes were reduced, but no more than `REPEATS` times."""
REPEATS = 50
_POLL_S = 0.05
_PR_SET_PDEATHSIG = 1


def repeats_of(size: int) -> int:
    """Return how often a message of so many bytes is reduced in one round."""
    return max(2, min(REPEATS, ROUND_BYTES // size))


def root_line(text: str) -> str:
    """Return the line of a rank's stderr that says why it ended."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for at, line in enumerate(lines[:-1]):
        if line == "Last error:":  # NCCL's own word, below torch's
            return lines[at + 1]
    errors = [line for line in lines if "Error" in line and not line.startswith(("File", "raise"))]
    return (errors or lines or ["it said nothing"])[-1]


# -- the parent ----------------------------------------------------------------------------------


def run_ranks(backend: str, counts: list[int], sizes: list[int], limit_s: float) -> dict[str, Any]:
    """Start a process per rank, wait for all, end them at the limit or when one has failed."""
    end = time.monotonic() + limit_s
    with tempfile.TemporaryDirectory(prefix="sgmatrix-allreduce-") as folder:
        base = [sys.executable, __file__, "rank", backend]
        what = [",".join(map(str, counts)), ",".join(map(str, sizes)), folder]
        ranks = [_start(folder, rank, [*base, str(rank), *what]) for rank in range(max(counts))]
        error = None
        try:
            while error is None and any(rank.poll() is None for rank in ranks):
                failed = [n for n, rank in enumerate(ranks) if rank.poll() not in (None, 0)]
                if failed:
                    error = f"rank {failed[0]}: {root_line(_said(folder, failed[0]))}"
                elif time.monotonic() > end:
                    error = f"no answer within {limit_s:g} s"
                time.sleep(_POLL_S)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        bad = [n for n, rank in enumerate(ranks) if rank.returncode != 0]
        if error is None and bad:
            error = f"rank {bad[0]}: {root_line(_said(folder, bad[0]))}"
        found = Path(folder, "found.jsonl")
        lines = found.read_text().splitlines() if found.exists() else []
        tables = dict(json.loads(line) for line in lines)
    return {"allreduce_s": tables, "error": error}


def _start(folder: str, rank: int, command: list[str]) -> "subprocess.Popen[bytes]":
    with Path(folder, f"{rank}.err").open("wb") as err:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - no other thread runs
        )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _said(folder: str, rank: int) -> str:
    return Path(folder, f"{rank}.err").read_text(errors="replace")


# -- a rank --------------------------------------------------------------------------------------


def be_rank(backend: str, rank: int, counts: list[int], sizes: list[int], folder: str) -> None:
    """Take part in every group that has this rank; the first rank writes what was found."""
    import torch

    dist: Any = torch.distributed
    cuda = backend == "nccl"
    if cuda:
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(1)
    dist.init_process_group(
        backend,
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=max(counts),
        timeout=timedelta(seconds=600),  # the parent ends us long before
    )
    groups = {count: dist.new_group(list(range(count))) for count in sorted(counts)}
    with Path(folder, "found.jsonl").open("a") as found:
        for count, group in groups.items():
            if rank < count:
                table = table_of(
                    torch, dist, group, count, sizes, f"cuda:{rank}" if cuda else "cpu"
                )
                if rank == 0:
                    print(json.dumps([str(count), table]), file=found, flush=True)
        dist.barrier()  # nobody leaves while others still need its help
    os._exit(0)  # tearing the groups down takes seconds, and can hang


def table_of(
    torch: Any, dist: Any, group: Any, count: int, sizes: list[int], device: str
) -> list[list[float]]:
    """Return `[[bytes, s], ...]` of one group.

    Raises:
        RuntimeError: when what is reduced is not the sum.
    """
    check = torch.ones(8, dtype=torch.bfloat16, device=device)
    dist.all_reduce(check, group=group)
    if check.tolist() != [float(count)] * 8:
        raise RuntimeError(f"Error: the all-reduce of {count} ones gave {check.tolist()}")
    table = []
    for size in sizes:
        message = torch.zeros(size // 2, dtype=torch.bfloat16, device=device)
        repeats = repeats_of(size)
        reduce = partial(dist.all_reduce, message, group=group)
        reduce()  # connections and buffers are made here
        round_s = _on_gpu(torch, reduce, repeats) if device != "cpu" else _on_cpu(reduce, repeats)
        seconds = []
        for _ in range(ROUNDS):
            dist.all_reduce(check, group=group)  # they begin together
            mine = torch.tensor([round_s()], dtype=torch.float64, device=device)
            dist.all_reduce(mine, op=dist.ReduceOp.MAX, group=group)
            seconds.append(float(mine.item()) / repeats)
        table.append([size, statistics.median(seconds)])
    return table


def _on_cpu(reduce: Any, repeats: int) -> Any:
    def round_s() -> float:
        begin = time.perf_counter()
        for _ in range(repeats):
            reduce()
        return time.perf_counter() - begin

    return round_s


def _on_gpu(torch: Any, reduce: Any, repeats: int) -> Any:
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # NCCL's watchdog asks for events meanwhile, in a thread of its own
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(repeats):
            reduce()
    graph.replay()
    torch.cuda.synchronize()

    def round_s() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000

    return round_s


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: none of its modules is the engine's
    if sys.argv[1] == "rank":
        _, _, backend, rank, counts, sizes, folder = sys.argv
        be_rank(backend, int(rank), _numbers(counts), _numbers(sizes), folder)
    else:
        backend, counts, sizes, limit_s = sys.argv[1:]
        json.dump(run_ranks(backend, _numbers(counts), _numbers(sizes), float(limit_s)), sys.stdout)
