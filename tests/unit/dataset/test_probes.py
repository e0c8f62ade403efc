"""What a probe that is right may read, and how one that is wrong is seen."""

import random
import statistics

import pyarrow.parquet as pq
import pytest

from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.core.parquet import table_from_rows, write_parquet
from sgmatrix.core.schemas import with_metadata
from sgmatrix.core.schemas_compare import EXPERTS, EXPERTS_VERSION
from sgmatrix.dataset.points import _add_probe_doubts
from sgmatrix.dataset.probes import (
    distinct_sd,
    expected_distinct,
    experts_table,
    probe_doubts,
    probe_of,
)

WIDE = {"experts": 128, "own": 4}


def simulated(batch, experts, own, times=4000):
    """Distinct experts of evenly routed tokens, drawn and counted."""
    rng = random.Random(20251104)
    return [
        len({one for _ in range(batch) for one in rng.sample(range(experts), own)})
        for _ in range(times)
    ]


# --- the counting argument -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "experts", "own", "want"),
    # 2 tokens of 8 in 256: 8 + 8 - 8 x 8 / 256; 2 of 1 in 2: both alike in half of the cases
    [(0, 128, 4, 0.0), (1, 128, 4, 4.0), (2, 256, 8, 15.75), (2, 2, 1, 1.5), (3, 8, 8, 8.0)],
)
def test_small_batches_match_the_hand_count(batch, experts, own, want):
    assert expected_distinct(batch, experts=experts, own=own) == pytest.approx(want)


@pytest.mark.parametrize(
    ("batch", "experts", "own", "want"),
    # one token, or every expert: no spread; 2 of 1 in 2: 1 or 2, each in half of the cases
    [(1, 128, 4, 0.0), (5, 8, 8, 0.0), (2, 2, 1, 0.5)],
)
def test_their_spread_matches_the_hand_count(batch, experts, own, want):
    assert distinct_sd(batch, experts=experts, own=own) == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize(("batch", "experts", "own"), [(2, 16, 3), (8, 128, 4), (32, 128, 8)])
def test_mean_and_spread_agree_with_a_simulation_that_shares_no_code(batch, experts, own):
    counts = simulated(batch, experts, own)
    mean, sd = statistics.fmean(counts), statistics.stdev(counts)

    want = distinct_sd(batch, experts=experts, own=own)
    assert abs(mean - expected_distinct(batch, experts=experts, own=own)) < 4 * sd / 4000**0.5
    assert sd == pytest.approx(want, rel=4 / (2 * 4000) ** 0.5)  # 4 standard errors of a spread


# --- doubts --------------------------------------------------------------------------------------

RIGHT = {8: 28.7, 16: 51.0, 32: 81.7, 64: 111.2}  # 128 x (1 - (1 - 4/128)^B)
FAULTY = {8: 34.1, 16: 64.6, 32: 100.5, 64: 122.5}  # a kernel whose union was wrong, on an H200
PLAIN = {8: 51.6, 16: 82.4, 32: 111.8, 64: 125.9}  # k = 8 experts of each token


def probe(means, *, sd=None, steps=128, experts=128, top_k=8, own=4):
    """A probe whose steps are independent of each other, where `sd` says nothing else."""

    def spread(batch):
        return distinct_sd(batch, experts=experts, own=own) if sd is None else sd

    return {
        "batches": {
            str(batch): {
                "activated_mean": mean,
                "activated_sd": spread(batch),
                "steps": steps,
                "layers": 48,
                "experts": experts,
                "top_k": top_k,
            }
            for batch, mean in means.items()
        }
    }


@pytest.fixture
def doubts(tmp_path):
    """Doubts about the probe of cell `on`, whose settings and reference are given."""
    layout = Layout(tmp_path / "results" / "made-up")

    def doubts(on, off=None, *, reference="off", **settings):
        for cell, record in (("on", on), ("off", off)):
            if record is not None:
                write_json(layout.launch(cell, "probe") / "probe.json", record)
        oea = {"on": True, "settings": {"k0": 4, "fill": "repeat", **settings}}
        plan = {
            "cells": {
                "off": {"id": "off", "oea": {"on": False, "settings": {}}},
                "on": {"id": "on", "oea": oea},
            },
            "probes": [
                {"cell": "off", "reference": "off"},
                {"cell": "on", "reference": reference},
            ],
        }
        return probe_doubts(layout, plan)

    return doubts


def test_a_right_kernel_is_not_doubted(doubts):
    assert doubts(probe(RIGHT), probe(PLAIN, own=8)) == {}


@pytest.mark.parametrize("batch", FAULTY)
def test_a_faulty_kernel_is_doubted_at_each_batch(doubts, batch):
    why = doubts(probe({batch: FAULTY[batch]}), probe(PLAIN, own=8))

    assert why == {
        "on": f"the probe read {FAULTY[batch]} distinct experts at batch {batch}, "
        f"k0 = 4 allows 4 to {RIGHT[batch]}"
    }


def test_uneven_routing_reads_fewer_and_is_no_fault(doubts):
    assert doubts(probe({16: 20.0}), probe({16: 30.0}, own=8)) == {}


def test_more_than_the_cell_without_oea_is_doubted_although_even_routing_allows_it(doubts):
    # k0 of even routing would be 51; the model itself opens no more than 30
    (why,) = doubts(probe({16: 40.0}), probe({16: 30.0}, own=8)).values()

    assert "read 40.0 distinct experts at batch 16, k0 = 4 allows 4 to 30.0" in why


def test_fewer_than_one_token_s_own_choice_is_doubted(doubts):
    (why,) = doubts(probe({8: 3.0}), probe(PLAIN, own=8)).values()

    assert "read 3.0 distinct experts at batch 8" in why
    assert doubts(probe({8: 3.9}), probe(PLAIN, own=8)) == {}  # within 4 %


def test_steps_that_are_all_alike_are_one_sample(doubts):
    # one step of 16 tokens has a standard deviation of 2.6: 51 + 4 % + 4 x 2.6 = 63.5
    assert distinct_sd(16, **WIDE) == pytest.approx(2.6, abs=0.05)
    assert doubts(probe({16: 63.0}, sd=0.0), probe(PLAIN, own=8)) == {}
    assert "on" in doubts(probe({16: 64.0}, sd=0.0), probe(PLAIN, own=8))
    # as many of them, each by itself, are 128 samples
    assert "on" in doubts(probe({16: 63.0}), probe(PLAIN, own=8))


def test_a_few_steps_may_be_further_off_than_many(doubts):
    # over 2 steps chance makes 4 x 2.6 / 1.41 = 7.4, over 128 steps 0.9
    assert doubts(probe({16: 60.0}, steps=2), probe(PLAIN, own=8)) == {}
    assert "on" in doubts(probe({16: 60.0}, steps=128), probe(PLAIN, own=8))


def test_rows_that_are_filled_with_distinct_experts_may_read_a_token_s_whole_top_k(doubts):
    one = probe({1: 8.0})

    assert doubts(one, probe({1: 8.0}, own=8), fill="distinct") == {}
    assert "on" in doubts(one, probe({1: 8.0}, own=8), fill="repeat")


def filled(batch, experts, top_k, k0, times=1000):
    """Distinct experts of rows that share, and are filled up from their own best; even routing."""
    rng = random.Random(20251104)
    counts = []
    for _ in range(times):
        rows = [rng.sample(range(experts), experts) for _ in range(batch)]
        opened = {one for row in rows for one in row[:k0]}
        read = set(opened)
        for row in rows:
            shared = [one for one in row[k0:] if one in opened][: top_k - k0]
            lacks = top_k - k0 - len(shared)
            read |= set([one for one in row[k0:] if one not in opened][:lacks])
        counts.append(len(read))
    return counts


@pytest.mark.parametrize("k0", [1, 2])
@pytest.mark.parametrize("experts", [8, 16, 128])
def test_a_right_core_that_fills_its_rows_is_not_doubted_at_any_batch(doubts, experts, k0):
    shape = {"experts": experts, "top_k": 4}
    on = {}
    for batch in (1, 2, 3, 4, 8, 16):
        counts = filled(batch, experts, 4, k0)
        on |= probe(
            {batch: statistics.fmean(counts)}, sd=statistics.stdev(counts), steps=1000, **shape
        )["batches"]
    means = {int(batch): expected_distinct(int(batch), experts=experts, own=4) for batch in on}
    off = probe(means, own=4, **shape)

    assert doubts({"batches": on}, off, k0=k0, fill="distinct") == {}
    assert doubts({"batches": on}, off, k0=k0, fill="repeat") != {}


def test_two_rows_that_are_filled_add_what_each_lacks_and_no_more(doubts):
    # 1 expert that both open, and 3 more of each row's own: 7; the arm without OEA reads 8
    limits = {"experts": 1000, "top_k": 4, "own": 1}
    off = probe({2: 8.0}, **limits)

    assert doubts(probe({2: 7.0}, **limits), off, k0=1, fill="distinct") == {}
    (why,) = doubts(probe({2: 7.9}, **limits), off, k0=1, fill="distinct").values()
    assert "k0 = 1, fill = distinct allows 1 to 7.0" in why


def test_rows_of_a_batch_that_opened_enough_lack_none_and_are_doubted_as_any_other(doubts):
    # 64 tokens that open 4 of 128 each read 111.2; 4 + 64 x 1 are fewer than that
    near = {"top_k": 5}
    off = probe({64: 128.0}, **near)

    assert doubts(probe({64: 111.2}, **near), off, fill="distinct") == {}
    assert "on" in doubts(probe({64: 128.0}, **near), off, fill="distinct")


@pytest.mark.parametrize("limit", [{"k_max": 4}, {"max_rank": 5}])
def test_a_row_that_may_not_take_what_is_open_lacks_some_at_any_batch(doubts, limit):
    # 111.2 of the batch and one more of each row, bounded by the arm without OEA
    near = {"top_k": 5}

    assert doubts(probe({64: 119.0}, **near), probe({64: 119.0}), fill="distinct", **limit) == {}
    assert "on" in doubts(probe({64: 119.0}, **near), probe({64: 119.0}), fill="distinct")
    assert "on" in doubts(probe({64: 128.0}, **near), probe({64: 119.0}), fill="distinct", **limit)


def test_below_p_1_a_token_may_open_one_expert_alone(doubts):
    few, off = probe({1: 2.1}), probe({1: 8.0}, own=8)

    assert doubts(few, off, p=0.5) == {}
    assert "on" in doubts(few, off) and "on" in doubts(few, off, p=1.0)
    (why,) = doubts(probe({1: 0.9}), off, p=0.5).values()
    assert "read 0.9 distinct experts at batch 1, k0 = 4, p = 0.5 allows 1 to 4.0" in why


@pytest.mark.parametrize(
    ("on", "changes"),
    [
        (None, {}),  # not probed
        ({"status": "failed", "reason": "server_crash"}, {}),
        (probe(FAULTY), {"reference": None}),  # nothing to set it beside
    ],
)
def test_what_was_not_counted_is_not_doubted(doubts, on, changes):
    assert doubts(on, probe(PLAIN, own=8), **changes) == {}


def test_the_reference_alone_gives_a_doubt_of_none(doubts):
    assert doubts(None, probe(FAULTY, own=8)) == {}


def test_a_plan_from_before_there_were_probes_has_no_doubts(tmp_path):
    assert probe_doubts(Layout(tmp_path), {"cells": {}}) == {}
    assert probe_of(Layout(tmp_path), "tp1") is None


# --- the flag ------------------------------------------------------------------------------------


def flagged(doubts, **row):
    given = {"cell": "on", "current": True, "status": "ok", "validity": "valid", **row}
    # the plan and the folder are those of the doubts
    _add_probe_doubts([given], *doubts)
    return given.get("validity"), given.get("validity_detail")


@pytest.fixture
def doubted(tmp_path):
    """Where the probe of cell `on` is doubted: its layout and its plan."""
    layout = Layout(tmp_path / "results" / "made-up")
    write_json(layout.launch("on", "probe") / "probe.json", probe({16: 64.6}))
    oea = {"on": True, "settings": {"k0": 4, "fill": "repeat"}}
    plan = {
        "cells": {"on": {"id": "on", "oea": oea}},
        "probes": [{"cell": "on", "reference": "off"}],
    }
    return layout, plan


WHY = "implausible: the probe read 64.6 distinct experts at batch 16, k0 = 4 allows 4 to 51.0"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("valid", "implausible"),
        ("cold", "cold,implausible"),
        ("foreign_load,partial", "partial,implausible,foreign_load"),  # in the order of flags
        ("implausible", "implausible"),
    ],
)
def test_a_doubted_cell_s_points_are_flagged_in_the_order_of_flags(doubted, before, after):
    assert flagged(doubted, validity=before) == (after, WHY)


def test_what_the_point_s_own_flags_say_is_kept(doubted):
    _, detail = flagged(doubted, validity="cold", validity_detail="cold: one wave")

    assert detail == f"cold: one wave | {WHY}"


@pytest.mark.parametrize(
    "change", [{"cell": "off"}, {"current": False}, {"status": "failed", "validity": None}]
)
def test_other_cells_superseded_and_failed_points_are_left_as_they_are(doubted, change):
    given = {"validity": "valid", **change}

    assert flagged(doubted, **given) == (given["validity"], None)


# --- the table -----------------------------------------------------------------------------------


def entry(cell, attempt, step):
    return {
        "campaign": "made-up",
        "cell": cell,
        "cell_key": "k",
        "attempt": attempt,
        "batch": 2,
        "step": step,
        "layer": 0,
        "tokens": 2,
        "activated": 7,
        "experts": 8,
        "top_k": 4,
    }


def test_the_table_has_the_rows_of_every_attempt_and_leaves_out_what_is_half_written(tmp_path):
    layout = Layout(tmp_path / "made-up")
    for cell, attempt in (("on", 2), ("on", 1), ("off", 1)):
        rows = [entry(cell, attempt, step) for step in range(2)]
        target = layout.attempt(cell, "probe", attempt) / "experts.parquet"
        schema = with_metadata(EXPERTS, "experts", EXPERTS_VERSION, {})
        write_parquet(table_from_rows(rows, schema), target)
    half = layout.attempt("on", "probe", 3) / "experts.parquet"
    half.parent.mkdir()
    half.write_bytes((target.read_bytes())[:40])

    table, left_out = experts_table(layout)

    assert [(r["cell"], r["attempt"], r["step"]) for r in table.to_pylist()] == [
        *[("off", 1, 0), ("off", 1, 1)],
        *[("on", 1, 0), ("on", 1, 1)],
        *[("on", 2, 0), ("on", 2, 1)],
    ]
    (half,) = left_out
    assert half.path == "history/on/probe/3/experts.parquet"
    assert half.why.startswith("is no whole Parquet file: ")


def test_without_a_probe_the_table_has_its_columns_and_no_rows(tmp_path):
    file = tmp_path / "experts.parquet"
    write_parquet(experts_table(Layout(tmp_path))[0], file)

    table = pq.read_table(file)
    assert (table.num_rows, table.column_names) == (0, EXPERTS.names)
