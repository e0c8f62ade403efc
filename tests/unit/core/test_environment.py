"""What an engine's processes see of the caller's environment."""

import os

import pytest

from sgmatrix.core.environment import TOKEN_VARIABLE, engine_environment, server_environment


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {5, 3})


@pytest.mark.parametrize(
    "name",
    ["PYTHONPATH", "SGLANG_USE_CPU_ENGINE", "SGL_X", "SNAKEMAKE_PROFILE", "OMP_NUM_THREADS",
     "MKL_NUM_THREADS", "VIRTUAL_ENV", "MLFLOW_TRACKING_URI", "NCCL_P2P_DISABLE", "LD_PRELOAD",
     "TORCHINDUCTOR_CACHE_DIR", "CUDA_LAUNCH_BLOCKING"],
)  # fmt: skip
def test_what_would_change_how_the_engine_runs_is_not_inherited(monkeypatch, name):
    monkeypatch.setenv(name, "from the caller")

    assert name not in engine_environment({})
    assert engine_environment({name: "declared"})[name] == "declared"


def test_the_rest_of_the_caller_s_environment_is_kept(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/cuda")

    assert engine_environment({"A": "1"})["LD_LIBRARY_PATH"] == "/opt/cuda"
    assert engine_environment({"LD_LIBRARY_PATH": "/mine"})["LD_LIBRARY_PATH"] == "/mine"


def test_a_server_sees_the_gpus_of_its_lease_and_no_other(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")

    seen = server_environment({}, ["gpu-2", "gpu-3"], 2, "t0ken")

    assert seen["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert seen["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert seen[TOKEN_VARIABLE] == "t0ken"
    assert "SGLANG_CPU_OMP_THREADS_BIND" not in seen


def test_what_is_unset_is_not_inherited(monkeypatch):
    monkeypatch.setenv("STANDIN_ARGS", "from the shell")

    assert "STANDIN_ARGS" in server_environment({}, ["cpu"], 1, "t")
    assert "STANDIN_ARGS" not in server_environment({}, ["cpu"], 1, "t", ["STANDIN_ARGS"])


@pytest.mark.parametrize(("ranks", "bind"), [(1, "3"), (2, "3|5"), (3, "3|5|3")])
def test_on_the_cpu_each_rank_gets_a_core_of_those_we_may_use(ranks, bind):
    seen = server_environment({}, ["cpu"], ranks, "t")

    assert seen["SGLANG_CPU_OMP_THREADS_BIND"] == bind
    assert seen["CUDA_VISIBLE_DEVICES"] == ""


def test_what_the_campaign_declares_wins_but_not_over_the_token():
    seen = server_environment(
        {"SGLANG_CPU_OMP_THREADS_BIND": "all", TOKEN_VARIABLE: "x"}, ["cpu"], 2, "t"
    )

    assert seen["SGLANG_CPU_OMP_THREADS_BIND"] == "all"
    assert seen[TOKEN_VARIABLE] == "t"
