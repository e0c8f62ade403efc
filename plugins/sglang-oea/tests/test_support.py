"""What a planner may ask before any launch."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import sglang_oea
from sglang_oea import support


def test_the_report_is_json_and_imports_no_torch():
    code = (
        "import runpy, sys; runpy.run_module('sglang_oea.support', run_name='__main__');"
        "sys.stderr.write(str('torch' in sys.modules))"
    )
    root = str(Path(sglang_oea.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(run.stdout)

    assert set(said) == {"plugin_version", "plugin_sha256", "sglang_version", "supported", "why"}
    assert said["plugin_version"] == sglang_oea.__version__
    assert said["supported"] == (said["why"] is None)
    assert run.stderr == "False"


@pytest.mark.parametrize("version", ["0.5.15.post1", "0.5.16", "0.5.17", "0.5.23"])
def test_a_version_that_was_looked_at_is_supported(version):
    assert support.version_obstacle(version) is None


@pytest.mark.parametrize("version", ["0.5.15", "0.5.18", "0.5.22", "0.5.24", "0.6.0"])
def test_any_other_version_is_not(version):
    assert support.version_obstacle(version) == (
        f"SGLang {version} is not supported; supported: 0.5.15.post1, 0.5.16, 0.5.17, 0.5.23"
    )


def test_no_sglang_is_no_support():
    assert support.version_obstacle(None) == "SGLang is not installed beside the plug-in"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("moe_runner_backend", "flashinfer_trtllm"),
        ("moe_runner_backend", "flashinfer_mxfp4"),
        ("moe_runner_backend", "triton_kernel"),
        ("moe_a2a_backend", "deepep"),
        ("enable_torch_compile", True),
        ("enable_dp_attention", True),
        ("enable_two_batch_overlap", True),
        ("speculative_algorithm", "EAGLE"),
    ],
)
def test_an_argument_that_stands_in_the_way_is_named(name, value):
    (why,) = support.obstacles({name: value})

    assert why.startswith(name)
    assert name in support.READ


def test_defaults_and_back_ends_that_can_be_reached_are_no_obstacle():
    usual = {
        "moe_a2a_backend": "none",
        "enable_torch_compile": False,
        "speculative_algorithm": None,
    }

    assert support.obstacles({}) == []
    for runner in ("auto", "triton", "cutlass", "flashinfer_cutlass", "flashinfer_trtllm_routed"):
        assert support.obstacles(usual | {"moe_runner_backend": runner}) == []


def test_the_hash_is_that_of_the_sources():
    digest = hashlib.sha256()
    for file in sorted(Path(sglang_oea.__file__).parent.glob("*.py")):
        text = file.read_bytes()
        digest.update(file.name.encode() + b"\0" + str(len(text)).encode() + b"\0" + text)

    assert support.plugin_sha256() == digest.hexdigest()
