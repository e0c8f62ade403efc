"""The plug-in in the real SGLang, loaded by its own loader in spawned processes.

Needs SGLang and the plug-in installed (its entry point is what is tested) and, on a CPU, the
engine's environment; the project's tests/engine gives both.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import sglang_oea
from sglang_oea import support
from sglang_oea.reference import Rows, ranking, reference
from sglang_oea.router import Router
from sglang_oea.settings import Settings

if importlib.util.find_spec("sglang") is None:
    pytest.skip("SGLang is not installed", allow_module_level=True)
if not list(metadata.entry_points(group="sglang.srt.plugins", name="oea")):
    pytest.skip("the plug-in is not installed", allow_module_level=True)

K0 = 4
ROUTERS = {
    "softmax": Router(256, 8),
    "glm5": Router(256, 8, "sigmoid", biased=True),
    "dsv3": Router(256, 8, "sigmoid", biased=True, groups=8, top_groups=4),
}
SCALES = {"softmax": 1.0, "glm5": 2.5, "dsv3": 1.0}  # glm5: the factor is folded into weights


def tell(story, tmp_path, **env):
    given = {name: value for name, value in os.environ.items() if not name.startswith("OEA_")}
    run = subprocess.run(
        [sys.executable, Path(__file__).with_name("real_children.py"), story],
        env=given | {"OEA_ENABLE": "1", "OEA_K0": str(K0), **env},
        cwd=tmp_path,  # SGLang's own modules are found by name: an empty folder shadows none
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1]), run.stderr


@pytest.fixture(scope="module")
def on(tmp_path_factory):
    folder = tmp_path_factory.mktemp("on")
    said, log = tell("on", folder)
    assert said["exit"] == 0, log
    return said["told"]


@pytest.fixture(scope="module")
def off(tmp_path_factory):
    folder = tmp_path_factory.mktemp("off")
    status = folder / "status"
    said, log = tell("off", folder, OEA_STATUS_DIR=str(status))
    assert said["exit"] == 0, log
    assert not status.exists()
    return said["told"]


def opened(told):
    return {expert for row in told["ids"] for expert in row}


def inputs():
    """The logits and the bias that the children use, as lists."""
    torch = pytest.importorskip("torch")
    logits = torch.randn(16, 256, generator=torch.Generator().manual_seed(7)).double()
    bias = torch.randn(256, generator=torch.Generator().manual_seed(3)) * 0.1
    return logits.tolist(), bias.double().tolist()


@pytest.mark.parametrize("name", list(ROUTERS))
def test_off_routes_as_the_router_says(name, off):
    logits, bias = inputs()
    for i, row in enumerate(logits):
        keys = ranking(row, bias if ROUTERS[name].biased else None, ROUTERS[name])
        best = sorted(range(256), key=lambda j: -keys[j])[:8]
        assert sorted(off[name]["ids"][i]) == sorted(best)


@pytest.mark.parametrize("name", list(ROUTERS))
def test_on_a_decode_step_has_the_experts_and_weights_of_the_reference(name, on, off):
    router = ROUTERS[name]
    logits, bias = inputs()
    rows = Rows(logits, bias if router.biased else None, off[name]["ids"], off[name]["weights"], 16)
    for i, want in enumerate(reference(rows, router, Settings(K0), "distinct")):
        got = dict(zip(on[name]["ids"][i], on[name]["weights"][i], strict=True))
        assert set(got) == {*want.experts, *want.spare}
        for expert, weight in zip(want.experts, want.weights, strict=True):
            assert math.isclose(got[expert], weight, rel_tol=1e-4)
        assert math.isclose(sum(got.values()), SCALES[name], rel_tol=1e-4)


@pytest.mark.parametrize("name", list(ROUTERS))
def test_on_opens_fewer_experts_and_the_engines_recorder_sees_it(name, on, off):
    assert len(opened(on[name])) < 0.7 * len(opened(off[name]))
    assert on[name]["recorded"] == on[name]["ids"]


@pytest.mark.parametrize("name", list(ROUTERS))
def test_prefill_is_left_alone(name, on, off):
    assert on[name]["extend"] == off[name]["extend"]


def test_padding_rows_are_masked_by_the_engine_and_open_nothing(on):
    assert len({expert for row in on["padded"]["ids"][:5] for expert in row}) <= 5 * K0
    assert all(set(row) == {-1} for row in on["padded"]["ids"][5:])


def test_off_registers_nothing_and_imports_no_core(off, on):
    assert (on["hooked"], off["hooked"]) == (True, False)
    assert "sglang_oea.rank" in on["modules"]
    assert off["modules"] == [
        "sglang_oea",
        *(f"sglang_oea.{name}" for name in ("plugin", "refusal", "settings", "support")),
    ]


def test_a_rank_that_has_served_nothing_answers_with_no_calls(tmp_path):
    said, log = tell("started", tmp_path, OEA_STATUS_DIR=str(tmp_path / "status"))

    assert said["exit"] == 0, log
    proof = said["told"]["proof"]
    assert proof["answers"] == "nonce-1"
    assert (proof["role"], proof["pid"]) == ("scheduler", said["told"]["pid"])
    assert (proof["calls"], proof["tokens"], proof["layers"]) == (0, 0, [])
    assert proof["check"]["ok"] is None
    assert (proof["k0"], proof["core"], proof["detector"]) == (K0, None, "context")
    assert proof["plugin_version"] == sglang_oea.__version__
    assert proof["plugin_sha256"] == support.plugin_sha256()
    assert proof["sglang_version"] == "0.5.23"


def test_whatever_stands_in_the_way_ends_the_process_with_one_line(tmp_path):
    said, log = tell("refusals", tmp_path)

    told = said["told"]
    assert all(text.startswith("sglang-oea: refused: ") for text in told.values()), told
    for name, says in {
        "no k0, through SGLang's loader": "OEA_ENABLE=1 without OEA_K0; fix: set OEA_K0",
        "version": "SGLang 0.5.22 is not supported",
        "not what its version was": "SGLang 0.5.17 has the mode detector context, not hooks",
        "kernel": "it could not start: ModuleNotFoundError",
        "hook": "this SGLang has no sglang.srt.layers.moe.topk._post_process_topk_ids_gone",
        "not applied": "the hook of sglang.srt.layers.moe.topk._post_process_topk_ids was not",
        "flags": "enable_torch_compile: compiled decode steps do not run the plug-in; enable_dp",
        "format": "the MoE runner takes BYPASSED router output: it routes inside its kernel",
    }.items():
        assert says in told[name]
        assert told[name] in log
    # From a rank that serves the launcher is told, too; pending signals may merge into one.
    assert set(said["signals"]) == {"SIGQUIT"}
