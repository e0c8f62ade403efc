"""Are both cores right on this GPU? `python device/check.py [--jobs N] [--first LINE]`.

It takes a quarter of an hour, most of it to compile; N jobs share the lines on the same GPU.

It needs torch, triton and the package.

Each line is one core, router, k0 and dtype over the batch sizes 1 to 256, with spread, tied
and extreme logits, padding rows and shuffled columns, against the list-and-set reference.
It exits with 1 at the first untruth: end the whole run then. Nothing else shows a kernel that
is wrong on one GPU, neither the interpreter nor a healthy server.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from sglang_oea.check import cases_for, check_cases, sizes_up_to
from sglang_oea.cores import core_for
from sglang_oea.router import Router
from sglang_oea.settings import Settings

DEVICE = "cuda"
SIZES = sizes_up_to(256)
GENERAL = Settings(4, k_max=6, p=0.5, max_rank=24, core="eager")


def routers(experts: int) -> Iterator[Router]:
    """Yield the routers of models that matter: Qwen3, GLM-5, DeepSeek-V3, and odd ones."""
    yield Router(experts, 8)
    yield Router(experts, 8, "sigmoid", biased=True)
    yield Router(experts, 8, "sigmoid", biased=True, groups=8, top_groups=4)
    yield Router(experts, 8, "sigmoid", biased=True, groups=8, top_groups=4, shared=1)
    yield Router(experts, 8, "softmax", groups=8, top_groups=3, renormalize=False)


def todo() -> Iterator[tuple[Router, torch.dtype, list[tuple[str, Settings, str]]]]:
    """Yield router, dtype and the cores, settings and fills that share their cases."""
    for experts in (128, 256):
        for router in routers(experts):
            for dtype in (torch.bfloat16, torch.float32):
                main_dtype = dtype == torch.bfloat16
                lines = [
                    ("triton", Settings(k0, core="triton"), "repeat")
                    for k0 in (range(1, 9) if main_dtype else (1, 4, 8))
                ]
                lines += [
                    ("eager", Settings(k0, core="eager"), "repeat")
                    for k0 in ((1, 4, 8) if main_dtype else (4,))
                ]
                for core in ("triton", "eager"):
                    lines += [(core, Settings(2, core=core), fill) for fill in ("mask", "distinct")]
                yield router, dtype, lines
            yield router, torch.bfloat16, [("eager", GENERAL, "repeat")]
    for router in (Router(60, 4), Router(384, 6, "sigmoid", biased=True), Router(512, 10)):
        yield router, torch.bfloat16, [("triton", Settings(2, core="triton"), "repeat")]


def check(job: int, jobs: int, first: int) -> int:
    """Check the lines from `first` on whose number leaves `job` by `jobs`; return 0, or 1."""
    begun, cases, line = time.monotonic(), 0, -1
    for router, dtype, lines in todo():
        shared: list = []
        for core, settings, fill in lines:
            line += 1
            if line < first or line % jobs != job:
                continue
            shared = shared or list(cases_for(router, lines[0][1], SIZES, dtype, DEVICE))
            since = time.monotonic()
            done = check_cases(core_for(router, settings, DEVICE, fill), shared)
            cases += done.cases
            kind = router.kind + ("" if router.renormalize else ", raw")
            kind += f", {router.shared} shared" if router.shared else ""
            print(
                f"{line:4} {core:7}{router.experts:5}{router.top_k:3}{settings.k0:4}  {kind:38}"
                f"{fill:9}{str(dtype).removeprefix('torch.'):9}{done.cases:5}"
                f"{done.max_weight_error:8.0e}{time.monotonic() - since:5.1f}",
                flush=True,
            )
            if not done.ok:
                print(f"UNTRUE: {done.problem}", flush=True)
                return 1
    print(f"true: {cases} cases in {time.monotonic() - begun:.0f} s", flush=True)
    return 0


def main() -> int:
    """Print the table; return 0, 1 at an untruth, or 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, 1 by default")
    parser.add_argument("--first", type=int, default=0, metavar="LINE", help="where to begin")
    parser.add_argument("--job", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error("--jobs wants 1 or more")
    if args.job is not None:
        return check(args.job, args.jobs, args.first)
    if not torch.cuda.is_available():
        print("no CUDA device: this check says nothing elsewhere", file=sys.stderr)
        return 2
    import triton

    name = torch.cuda.get_device_name()
    print(f"{name}, torch {torch.__version__}, triton {triton.__version__}, batches {SIZES}")
    print(
        f"{'line':4} {'core':7}{'E':>5}{'k':>3}{'k0':>4}  {'router':38}{'fill':9}{'dtype':9}"
        "cases  error  s",
        flush=True,
    )
    if args.jobs == 1:
        return check(0, 1, args.first)
    own = [sys.executable, __file__, "--jobs", str(args.jobs), "--first", str(args.first), "--job"]
    running = [subprocess.Popen([*own, str(job)]) for job in range(args.jobs)]
    codes = [child.wait() for child in running]
    if any(codes):
        print(f"exit codes of the jobs: {codes}")
        return 1
    print("every job found its lines true")
    return 0


if __name__ == "__main__":
    sys.exit(main())
