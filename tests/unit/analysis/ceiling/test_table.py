"""The table `ceilings`, and points beside it: columns, ratios, contradictions."""

from pathlib import Path
from typing import Any

import pytest

from builders import PROJECT, campaign_data
from ceiling_facts import H200, QWEN3
from finished import Finished
from sgmatrix.analysis.ceiling.campaign import matrix_ceilings
from sgmatrix.analysis.ceiling.closed_loop import ceiling
from sgmatrix.analysis.ceiling.facts import campaign_facts, device_in, shape_in
from sgmatrix.analysis.ceiling.inputs import Reported, server_of
from sgmatrix.analysis.ceiling.reported import reported_by
from sgmatrix.analysis.ceiling.table import ceiling_rows, measured_lengths, write_ceilings
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import read_json, write_json
from sgmatrix.dataset.points import point_rows
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.model import ModelFacts


def facts(device: str = "cuda", hardware: str | None = "h200-sxm", **model: Any) -> dict[str, Any]:
    known = {"name": "tiny", "path": "", "recipe": "tiny-qwen3-moe", "digest": "0" * 64}
    return campaign_facts(
        ModelFacts(**{**known, "vocab_size": 32768, **model}),
        device=device,
        hardware=hardware,
        gpu_names=[],
        project=PROJECT,
    )


def told(tmp_path: Path, known: dict[str, Any] | None = None) -> Finished:
    known = known or facts()
    data = campaign_data(axes={"parallelism": ["tp1", "tp2"]})
    if known.get("device") != "cpu":
        data |= {"node": {"gpus": 2}}
        data["engines"]["standin"]["device"] = "cuda"
    one = Finished(tmp_path, Campaign.model_validate(data))
    write_json(one.layout.plan, {**read_json(one.layout.plan), "facts": known})
    return one


def test_each_point_of_the_history_and_of_the_plan_has_a_row(tmp_path: Path) -> None:
    one = told(tmp_path)
    one.measured("tp1", rates={1: 64, 2: 120})
    rows = ceiling_rows(one.layout, read_json(one.layout.plan))
    assert [(row["cell"], row.get("attempt"), row["load_id"][:5]) for row in rows] == [
        ("tp1", 1, "c0001"),
        ("tp1", 1, "c0002"),
        ("tp2", None, "c0001"),
        ("tp2", None, "c0002"),
    ]
    assert {row["device"] for row in rows} == {"NVIDIA H200 SXM"}


def test_a_row_holds_both_tiers(tmp_path: Path) -> None:
    one = told(tmp_path)
    row = ceiling_rows(one.layout, read_json(one.layout.plan))[1]
    plan = read_json(one.layout.plan)
    server = server_of(plan["cells"]["tp1"], shape_in(plan["facts"]), device_in(plan["facts"], {}))
    hard, practical = (
        ceiling(server, tier, concurrency=2, input_len=16, output_len=4)
        for tier in ("hard", "practical")
    )
    assert row["hard_tok_s"] == hard.output_tok_s
    assert row["practical_tok_s"] == practical.output_tok_s
    assert row["practical_tpot_with_prefill_ms"] == 1e3 * practical.tpot_with_prefill_s
    assert (row["distinct_source"], row["weight_source"]) == ("uniform", "formula")
    parts = [value for name, value in row.items() if name.startswith("step_") and value]
    assert sum(parts) == pytest.approx(1e3 * practical.step.seconds)


def test_points_get_columns_and_ratios(tmp_path: Path) -> None:
    one = told(tmp_path)
    one.measured("tp1", rates={1: 64, 2: 120})
    write_ceilings(one.layout, one.layout.datasets / "ceilings.parquet")
    rows = [row for row in point_rows(one.layout)[0] if row["cell"] == "tp1"]
    for row in rows:
        assert row["hard_ratio"] == pytest.approx(row["output_tok_s"] / row["ceiling_hard_tok_s"])
        assert row["practical_ratio"] > row["hard_ratio"] > 0
        assert row["ceiling_bound"] == "memory"
    assert [row["ceiling_running"] for row in rows] == [1, 2]
    told_ms = [row["hard_tpot_ms"] for row in ceiling_rows(one.layout, read_json(one.layout.plan))]
    assert [row["ceiling_hard_tpot_ms"] for row in rows] == told_ms[:2]
    assert {row["validity"] for row in rows} == {"valid"}


def test_more_than_physics_allows_is_flagged(tmp_path: Path) -> None:
    one = told(tmp_path)
    folder = one.measured("tp1", rates={1: 64, 2: 120})
    one.change_point(folder, 2, output_tok_s=1e9)
    write_ceilings(one.layout, one.layout.datasets / "ceilings.parquet")
    valid, wrong = (row for row in point_rows(one.layout)[0] if row["cell"] == "tp1")
    assert valid["validity"] == "valid"
    assert wrong["validity"] == "implausible"
    assert "1,000,000,000 tok/s is above the" in wrong["validity_detail"]
    assert "that NVIDIA H200 SXM allows at the most" in wrong["validity_detail"]


def test_between_even_routing_and_the_impossible_nothing_is_flagged(tmp_path: Path) -> None:
    """Tokens that open the same experts read fewer than even routing says."""
    one = told(tmp_path)
    folder = one.measured("tp1", rates={1: 64, 2: 120})
    row = ceiling_rows(one.layout, read_json(one.layout.plan))[1]
    assert row["hard_tok_s"] < row["impossible_tok_s"]
    one.change_point(folder, 2, output_tok_s=(row["hard_tok_s"] + row["impossible_tok_s"]) / 2)
    write_ceilings(one.layout, one.layout.datasets / "ceilings.parquet")
    _, point = (row for row in point_rows(one.layout)[0] if row["cell"] == "tp1")
    assert point["hard_ratio"] > 1
    assert point["validity"] == "valid"


def test_prompts_of_a_file_count_as_long_as_they_were(tmp_path: Path) -> None:
    """Planned are 16 tokens in and 4 out; 20 requests a second had 160 in and 4 out."""
    one = told(tmp_path)
    folder = one.measured("tp1", rates={1: 64, 2: 120})
    before = ceiling_rows(one.layout, read_json(one.layout.plan))
    one.change_point(folder, 2, output_tok_s=80.0, request_s=20.0, total_tok_s=3280.0)
    after = ceiling_rows(one.layout, read_json(one.layout.plan))
    plan = read_json(one.layout.plan)
    server = server_of(plan["cells"]["tp1"], shape_in(plan["facts"]), device_in(plan["facts"], {}))
    hard = ceiling(server, "hard", concurrency=2, input_len=160, output_len=4)
    assert after[0] == before[0]
    assert after[1]["hard_tok_s"] == pytest.approx(hard.output_tok_s)
    assert after[1]["hard_tok_s"] < before[1]["hard_tok_s"]


def test_a_cpu_node_is_bound_by_its_measured_memory_and_flags_nothing(tmp_path: Path) -> None:
    one = told(tmp_path, facts("cpu", None))
    measured = {"memory_copy_bytes_s": 1e10, "memory_cached_bytes_s": 5e10}
    write_json(one.layout.node_probe, {"measured": measured})
    folder = one.measured("tp1", rates={1: 64, 2: 120})
    one.change_point(folder, 2, output_tok_s=1e9)
    write_ceilings(one.layout, one.layout.datasets / "ceilings.parquet")
    row, wrong = (row for row in point_rows(one.layout)[0] if row["cell"] == "tp1")
    assert row["ceiling_hard_tok_s"] / row["ceiling_practical_tok_s"] == pytest.approx(5)
    assert wrong["validity"] == "valid"


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"device": "cuda"}, "the plan holds no facts of the model"),
        (
            {**facts("cpu", None)},
            "the memory rate of this CPU node is not measured yet",
        ),
    ],
)
def test_missing_facts_are_named_in_every_row(
    tmp_path: Path, known: dict[str, Any], why: str
) -> None:
    one = told(tmp_path, known)
    one.measured("tp1", rates={1: 64, 2: 120})
    write_ceilings(one.layout, one.layout.datasets / "ceilings.parquet")
    rows = ceiling_rows(one.layout, read_json(one.layout.plan))
    assert {row["why_not"] for row in rows} == {why}
    assert all(row.get("hard_ratio") is None for row in point_rows(one.layout)[0])


def test_cells_on_another_kind_of_device_have_none(tmp_path: Path) -> None:
    """An engine on CPUs beside one on GPUs: no ratio to the peaks of the GPU."""
    one = told(tmp_path)
    plan = read_json(one.layout.plan)
    plan["cells"]["tp2"]["device"] = "cpu"
    why = {row["cell"]: row.get("why_not") for row in ceiling_rows(one.layout, plan)}
    assert why == {
        "tp1": None,
        "tp2": "its engine runs on cpu, the ceilings are of NVIDIA H200 SXM",
    }
    known = plan["facts"]
    assert list(matrix_ceilings(plan, shape_in(known), device_in(known, {}))) == ["tp1"]


def test_unknown_hardware_is_told_with_what_the_driver_says() -> None:
    known = facts("cuda", None)
    assert known["hardware"] is None
    with pytest.raises(SgmatrixError, match="no file of config/hardware"):
        device_in(known, {})


def test_a_model_that_is_not_known_says_so(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "rwkv", "vocab_size": 9}')
    known = facts(recipe=None, path=str(tmp_path))
    with pytest.raises(SgmatrixError, match="no ceiling for model_type 'rwkv'"):
        shape_in(known)


def test_named_facts_that_are_wrong_are_refused_at_once() -> None:
    with pytest.raises(SgmatrixError, match=r"model\.facts 'glm-6'"):
        facts(facts="glm-6")
    with pytest.raises(SgmatrixError, match=r"node\.hardware 'h300'"):
        facts("cuda", "h300")


def test_a_node_probe_is_the_practical_tier() -> None:
    known = facts()
    table = {"2": [[1024, 1e-5], [1048576, 1e-4]]}
    device = device_in(known, {"memory_copy_bytes_s": 4.2e12, "allreduce_s": table})
    assert device.practical_memory_bytes_s == 4.2e12
    assert device.memory_bytes_s == 4.8e12
    assert device.link is not None
    assert device.link.measured_here
    assert device.link.allreduce_s == {2: ((1024.0, 1e-5), (1048576.0, 1e-4))}
    damaged = {"2": None, "4": [[0, 1e-5], [1024, 0], [4096], [8192, 2e-5]], "8": []}
    assert device_in(known, {"allreduce_s": damaged}).link.allreduce_s == {4: ((8192.0, 2e-5),)}
    faster = device_in(known, {"memory_copy_bytes_s": 9e12})
    assert faster.practical_memory_bytes_s == 4.8e12


def test_what_a_server_reported_wins(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(
        "TP0] Load weight end. elapsed=9 s, type=X, avail mem=30 GB, mem usage=57.06 GB.\n"
        "TP1] Load weight end. elapsed=9 s, type=X, avail mem=30 GB, mem usage=57.05 GB.\n"
    )
    info = {"max_total_num_tokens": 1000, "effective_max_running_requests_per_dp": 8}
    flags = {"tp_size": 4, "dp_size": 4, "enable_dp_attention": True}
    said = reported_by(tmp_path, {"info": info}, flags)
    assert said == Reported(1000, 32, 57.06 * 2**30)
    assert reported_by(tmp_path, {"info": info}, {"dp_size": 4}).max_running == 8
    assert reported_by(tmp_path / "none", None, {}) == Reported()


@pytest.mark.parametrize(
    ("method", "stored"),
    [("fp8", "fp8"), ("bitsandbytes", "int4"), ("modelopt_fp4", "nvfp4"), ("mxfp8", "fp8")],
)
def test_weights_that_are_quantised_at_load(method: str, stored: str) -> None:
    cell = {"flags": {"quantization": method}}
    precision = server_of(cell, QWEN3, H200).model.precision
    assert (precision.attention, precision.routed, precision.lm_head) == (stored, stored, "bf16")


def test_two_digits_of_a_small_model_are_no_weight(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("Load weight end. x, mem usage=0.02 GB.\n")
    assert reported_by(tmp_path, None, {}).weight_bytes is None


def test_flags_as_the_ceiling_sees_them() -> None:
    known = facts(recipe=None, path="", facts="glm-5-nvfp4")
    shape = shape_in(known)
    device = device_in(facts("cuda", "rtx-pro-6000-server"), {})

    def server(reported: Reported | None = None, **flags: Any) -> Any:
        cell = {"flags": {"tp_size": 8, "mem_fraction_static": 0.92, **flags}}
        return server_of(cell, shape, device, reported=reported)

    assert server().pool.tokens == 340_123
    assert server(kv_cache_dtype="fp8_e4m3").pool.tokens == pytest.approx(340_123 * 1.83, rel=0.01)
    assert server(max_total_tokens=5000).pool.tokens == 5000
    groups = {"dp_size": 8, "enable_dp_attention": True, "max_total_tokens": 5000}
    assert server(**groups).pool.tokens == 40_000
    assert server(Reported(pool_tokens=5000), **groups).pool.tokens == 40_000
    whole = server(mem_fraction_static=None).pool.tokens
    assert whole == server(mem_fraction_static=1.0).pool.tokens > server().pool.tokens
    assert server(Reported(pool_tokens=7)).pool.tokens == 7
    assert server(Reported(weight_bytes=57.06 * 2**30)).pool.tokens == pytest.approx(315_482)
    assert server(chunked_prefill_size=4096).chunk == 4096
    assert server(chunked_prefill_size=-1).chunk == 8192
    assert server(max_running_requests=64).max_running == 64
    assert server(Reported(max_running=32), max_running_requests=64).max_running == 32
    assert server(speculative_algorithm="EAGLE", speculative_num_draft_tokens=4).speculation == (
        server(speculative_algorithm="EAGLE", speculative_num_steps=3).speculation
    )
    for algorithm, verified in {"EAGLE": 8, "eagle3": 8, "NGRAM": 12, "DFLASH": 16}.items():
        assert server(speculative_algorithm=algorithm).speculation.gained == verified
    assert server(enable_mixed_chunk=True).mixed
    assert server(quantization="fp8").model.precision == shape.precision


def test_attempts_of_another_model_are_left_out(tmp_path: Path) -> None:
    one = told(tmp_path)
    one.measured("tp1", rates={1: 64, 2: 120})
    plan = read_json(one.layout.plan)
    plan["model"]["digest"] = "f" * 64
    assert all(row.get("attempt") is None for row in ceiling_rows(one.layout, plan))


def test_lengths_are_those_of_the_answered_requests(tmp_path: Path) -> None:
    record = {"request_s": 5.0, "output_tok_s": 40.0, "total_tok_s": 140.0}
    assert measured_lengths(record) == {"input_len": 20.0, "output_len": 8.0}
    assert measured_lengths({**record, "request_s": 0}) == {}
    assert measured_lengths({**record, "output_tok_s": None}) == {}
    assert measured_lengths({}) == {}
    one = told(tmp_path)
    folder = one.measured("tp1", rates={1: 64, 2: 120})
    before = ceiling_rows(one.layout, read_json(one.layout.plan))[0]
    one.change_point(folder, 1, **{**record, "total_tok_s": 40_000.0})
    longer = ceiling_rows(one.layout, read_json(one.layout.plan))[0]
    assert longer["practical_tok_s"] < before["practical_tok_s"]
