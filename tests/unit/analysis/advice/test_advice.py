"""Advice on the reference campaign's own questions: which number, which sign, which cells."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ceiling_facts import CONFIG, GLM5, RTX
from sgmatrix.analysis.advice.experts import oea_advice
from sgmatrix.analysis.advice.memory import memory_advice
from sgmatrix.analysis.advice.noise import noise_advice
from sgmatrix.analysis.advice.piece import Advice, counts
from sgmatrix.analysis.advice.references import reference_advice
from sgmatrix.analysis.ceiling.campaign import CellCeilings, matrix_ceilings, planned_loads
from sgmatrix.core.facts.references import Reference, read_reference

BASE: dict[str, Any] = {"tp_size": 8, "mem_fraction_static": 0.92, "max_running_requests": 2048}
OFF = {"on": False, "settings": {}}


def record(
    cells: dict[str, tuple[dict[str, Any], dict[str, Any] | None]], concurrency: list[int]
) -> dict[str, Any]:
    """Return cells and launches as `plan.json` has them."""
    points = [
        {"load_id": f"c{c:04d}", "concurrency": c, "input_len": 256, "output_len": 128}
        for c in concurrency
    ]
    return {
        "cells": {
            name: {"id": name, "flags": flags, "oea": oea} for name, (flags, oea) in cells.items()
        },
        "launches": [{"cell": name, "launch": "1", "points": points} for name in cells],
    }


def ceilings(plan: dict[str, Any]) -> dict[str, CellCeilings]:
    return matrix_ceilings(plan, GLM5, RTX)


def test_oea_where_all_experts_are_read_anyway_and_where_not() -> None:
    on = {"on": True, "settings": {"k0": 4}}
    plan = record({"off": (BASE, OFF), "oea4": (BASE, on)}, [1, 8, 16, 64, 256, 1024])
    saturated, bound = oea_advice(ceilings(plan), planned_loads(plan["launches"]))
    assert saturated.topic == "oea_saturated"
    assert saturated.cells == ("oea4",)
    assert saturated.text == (
        "at concurrency 256 and 1,024 all experts are read with k0 = 4 or without it: at most "
        "0.9 % of a step can be saved there"
    )
    assert bound.topic == "oea_bound"
    assert bound.text == (
        "k0 = 4 can save of a decode step at the most: 7 % at 1, 25 % at 8, 28 % at 16, 19 % at 64"
    )


def test_a_k0_of_the_models_own_is_no_matter_of_savings() -> None:
    plan = record({"off": (BASE, OFF), "oea8": (BASE, {"on": True, "settings": {"k0": 8}})}, [16])
    assert list(oea_advice(ceilings(plan), planned_loads(plan["launches"]))) == []


def test_the_sign_of_a_memory_fraction() -> None:
    plan = record(
        {
            "mf0.92": (BASE, None),
            "mf0.85": ({**BASE, "mem_fraction_static": 0.85}, None),
            "mf0.95": ({**BASE, "mem_fraction_static": 0.95}, None),
        },
        [64],
    )
    axes = {name: {"mem_fraction": float(name.removeprefix("mf"))} for name in plan["cells"]}
    found = list(memory_advice(ceilings(plan), planned_loads(plan["launches"]), axes, "mf0.92"))
    assert [one.text for one in found] == [
        (
            "0.85 instead of 0.92: the KV pool shrinks from 340,123 to 269,573 tokens; a smaller "
            "fraction never gives more"
        ),
        (
            "0.95 instead of 0.92: the KV pool grows from 340,123 to 370,358 tokens; a smaller "
            "fraction never gives more"
        ),
    ]


def test_load_points_above_the_pool_or_the_cap() -> None:
    plan = record(
        {"pool": (BASE, None), "cap": ({**BASE, "max_running_requests": 64}, None)},
        [1, 64, 1024, 2048],
    )
    axes: dict[str, dict[str, object]] = {name: {} for name in plan["cells"]}
    found = list(memory_advice(ceilings(plan), planned_loads(plan["launches"]), axes, "pool"))
    assert {one.cells[0]: one.text for one in found} == {
        "pool": "at concurrency 2,048 requests wait: the KV pool lets 1,062 run at once",
        "cap": "at concurrency 1,024 and 2,048 requests wait: max_running_requests lets 64 run "
        "at once",
    }


def test_weights_that_leave_no_room() -> None:
    """Two pools of nothing differ by nothing; what is told is how much they miss."""
    fractions = {"small": 0.9, "smaller": 0.8}
    plan = record(
        {name: ({"tp_size": 4, "mem_fraction_static": f}, None) for name, f in fractions.items()},
        [1],
    )
    axes = {name: {"mem_fraction": f} for name, f in fractions.items()}
    loads = planned_loads(plan["launches"])
    found = list(memory_advice(ceilings(plan), loads, axes, "small"))
    assert [(one.topic, one.cells) for one in found] == [("no_room", ("small", "smaller"))]
    pool = ceilings(plan)["small"].server.pool
    assert pool is not None
    assert pool.device_bytes is not None
    assert f"they miss {-pool.device_bytes / 2**30:.1f} GiB per device or more" in found[0].text


def test_cells_below_the_noise() -> None:
    plan = record(
        {
            "base": (BASE, None),
            "alike": ({**BASE, "mem_fraction_static": 0.90}, None),
            "same": ({**BASE, "enable_mscclpp": True}, None),
            "other": ({**BASE, "tp_size": 4, "pp_size": 2}, None),
        },
        [64, 2048],
    )
    rounds = dict.fromkeys(plan["cells"], 1)
    found = list(noise_advice(ceilings(plan), "base", 2.5, rounds))
    assert [(one.topic, one.cells) for one in found] == [("below_noise", ("alike",))]
    assert "differ from those of base by at most 0.6 %, two launches of one cell by 2.5 %" in (
        found[0].text
    )
    assert not list(noise_advice(ceilings(plan), "base", 0.5, rounds))


def test_unknown_noise_is_said_once_and_only_of_single_launches() -> None:
    plan = record({"base": (BASE, None), "b": (BASE, None)}, [64])
    single = list(noise_advice(ceilings(plan), "base", None, {"base": 1, "b": 1}))
    assert [one.topic for one in single] == ["noise_unknown"]
    assert not list(noise_advice(ceilings(plan), "base", None, {"base": 3, "b": 3}))


def reference() -> Reference:
    return read_reference(CONFIG / "reference", "glm5-nvfp4-8xrtxpro6000")


def said(about: Reference) -> list[Advice]:
    return list(reference_advice(about, GLM5, RTX))


def test_what_is_said_of_the_reference() -> None:
    texts = [f"{one.topic}: {one.text}" for one in said(reference())]
    told = "\n".join(texts)
    assert (
        "lengths: reference campaign, a3-best: total over output throughput is 1.40 to 1.99 at "
        "concurrency 1, 256, 512, 1,024 and 2,048; 256 tokens in and 128 out give 3.00" in told
    )
    assert (
        "peak: reference campaign, a3-best: a peak of 7,216 tok/s at concurrency 2,048 is 2.9 "
        "times what its own TPOT of 815 ms allows (2,513)" in told
    )
    assert "multiplying takes at most 5 % of its TPOT at any load point" in told
    assert "at concurrency 2,048 the links take 14 % and bind in the ceiling (link)" in told
    assert (
        "the ceiling of a single stream is 194 tok/s hard and 137 practical, without speculation; "
        "its 10.36 tok/s are 8 % of that" in told
    )
    assert '"reduce mem-fraction-static to allow more KV cache": it has the wrong sign' in told
    assert len([text for text in texts if text.startswith("claim")]) == 2


def test_a_reference_without_faults_gets_no_advice() -> None:
    whole = reference()
    file = whole.file.model_copy(update={"claims": []})
    fair = tuple(
        one for one in whole.results if one.metric not in ("total_tok_s", "peak_output_tok_s")
    )
    assert said(dataclasses.replace(whole, file=file, results=fair)) == []


def test_blanks_and_ranges_of_a_reference_are_no_numbers() -> None:
    whole = reference()
    assert whole.value("a1-after", 128, "total_tok_s") is None
    assert whole.value("a1-after", 1, "output_tok_s") is None  # 8-11
    assert whole.value("a1-after", 256, "total_tok_s") == 1846
    assert len(whole.results) == 75


def test_a_missing_reference_tells_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="known: glm5-nvfp4-8xrtxpro6000"):
        read_reference(CONFIG / "reference", "glm6")


def test_counts_as_people_read_them() -> None:
    assert counts([2048]) == "2,048"
    assert counts([256, 8]) == "8 and 256"
    assert counts([1, 2, 3072]) == "1, 2 and 3,072"
    assert counts([]) == ""
