"""The Triton core in Triton's interpreter. It proves nothing about a GPU: device/check.py does."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import sglang_oea
from sglang_oea.router import Router
from sglang_oea.settings import Settings

try:
    metadata.version("triton")  # not by import: SGLang may have put a stand-in there
except metadata.PackageNotFoundError:
    pytest.skip("triton is not installed", allow_module_level=True)

from sglang_oea.triton_core import cannot_serve

ROUTERS = [
    Router(32, 4),
    Router(60, 6, "sigmoid"),
    Router(64, 8, "sigmoid", biased=True),
    Router(64, 8, "sigmoid", biased=True, groups=8, top_groups=4, shared=1),
    Router(24, 3, "softmax", groups=3, top_groups=2, renormalize=False),
]

CHECK = """
import sys, torch
from sglang_oea.check import check_core
from sglang_oea.cores import core_for
from sglang_oea.router import Router
from sglang_oea.settings import Settings
router = eval(sys.argv[1])
for k0, fill, dtype in ((1, "repeat", torch.bfloat16), (2, "distinct", torch.float32),
                        (router.top_k, "mask", torch.float32)):
    core = core_for(router, Settings(k0, core="triton"), "cpu", fill)
    done = check_core(core, [1, 2, 5, 9], dtype=dtype, device="cpu")
    assert done.ok, (k0, fill, done.problem)
    print(core.name, done.cases)
"""


@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.kind)
def test_the_triton_core_is_the_reference(router):
    root = Path(sglang_oea.__file__).parents[1]
    env = os.environ | {
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
    }
    run = subprocess.run(
        [sys.executable, "-c", CHECK, repr(router)],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["triton 8"] * 3


@pytest.mark.parametrize(
    ("router", "settings", "why"),
    [
        (Router(32, 4), Settings(2), None),
        (Router(32, 4, "sigmoid", biased=True, groups=4, top_groups=2), Settings(2), None),
        (Router(32, 4), Settings(2, p=0.9), "the general form"),
        (Router(32, 4), Settings(2, k_max=3), "the general form"),
        (Router(32, 4), Settings(2, max_rank=8), "the general form"),
        (Router(32, 4, "sqrtsoftplus"), Settings(2), "the scoring function sqrtsoftplus"),
        (Router(32, 4, biased=True), Settings(2), "a correction bias with softmax"),
    ],
)
def test_what_it_does_not_serve_is_said(router, settings, why):
    assert (cannot_serve(router, settings) or "").startswith(why or "")
    assert (cannot_serve(router, settings) is None) == (why is None)
