"""Which cells repeat a claim, however the campaign says what it gives to the server."""

import pytest

from builders import PROJECT, campaign, campaign_data, with_plugin
from ledger_entries import entry
from sgmatrix.analysis.ledger.match import repeating
from sgmatrix.core.layout import Layout
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.plan import make_plan


def met(tmp_path, where, what, concurrency=()):
    made = make_plan(what, Layout(tmp_path / "results/made-up"), PROJECT)
    loads = dict.fromkeys(made.cells, concurrency)
    return repeating(entry(applies_to=where), made.cells.values(), loads)


def test_a_bundle_is_met_by_the_same_sizes_as_flags(tmp_path):
    as_flags = campaign(axes={"tp_size": [1, 2], "pp_size": [None, 2]})

    assert met(tmp_path, {"parallelism": "tp2pp2"}, as_flags) == ("pp-size-2-tp-size-2",)
    assert met(tmp_path, {"parallelism": "tp2"}, as_flags) == ("tp-size-2",)


def test_a_size_of_one_that_is_given_is_as_one_that_is_not(tmp_path):
    given = campaign(axes={"tp_size": [2], "pp_size": [1], "ep_size": [1]})

    assert met(tmp_path, {"parallelism": "tp2"}, given) == ("ep-size-1-pp-size-1-tp-size-2",)


def test_a_bundle_is_not_met_by_one_that_spreads_its_experts_as_well(tmp_path):
    axes = campaign(axes={"parallelism": ["tp2", "tp2ep2", "dp2ep2"]})

    assert met(tmp_path, {"parallelism": "tp2ep2"}, axes) == ("tp2ep2",)
    assert met(tmp_path, {"ep_size": 2}, axes) == ("tp2ep2", "dp2ep2")
    assert met(tmp_path, {"parallelism": ["tp2", "dp2ep2"]}, axes) == ("tp2", "dp2ep2")


def test_a_flag_counts_wherever_it_is_given(tmp_path):
    data = campaign_data(axes={"parallelism": ["tp1", "tp2"]})
    data["engines"]["standin"]["flags"]["num_continuous_decode_steps"] = 16
    data["overrides"] = [
        {"where": {"parallelism": "tp2"}, "flags": {"num_continuous_decode_steps": 8}}
    ]
    what = Campaign.model_validate(data)

    assert met(tmp_path, {"decode_steps": 16}, what) == ("tp1",)
    assert met(tmp_path, {"num_continuous_decode_steps": 8.0}, what) == ("tp2",)


@pytest.mark.parametrize(
    ("where", "want"),
    [
        ({"max_running_requests": 8}, ("max-running-requests-8",)),
        ({"max_running_requests": None}, ("base",)),
        ({"max_running_requests": False}, ("base",)),
        ({"max_running_requests": "any"}, ("max-running-requests-1", "max-running-requests-8")),
        ({"max_running_requests": {"at_least": 8}}, ("max-running-requests-8",)),
        ({"max_running_requests": {"at_least": 1, "below": 8}}, ("max-running-requests-1",)),
        ({"max_running_requests": {"below": 1}}, ()),
        ({"max_running_requests": True}, ()),  # 1 is not true
        ({"max_running_requests": [1, 8], "decode_steps": 4}, ()),
        ([{"decode_steps": 4}, {"max_running_requests": 8}], ("max-running-requests-8",)),
    ],
)
def test_values_lists_bounds_and_words(tmp_path, where, want):
    what = campaign(axes={"max_running_requests": [None, 1, 8]})

    assert met(tmp_path, where, what) == want


def test_a_switch_is_met_by_true_alone(tmp_path):
    what = campaign(axes={"disable_radix_cache": [True, False]})

    assert met(tmp_path, {"disable_radix_cache": True}, what) == ("disable-radix-cache-on",)
    assert met(tmp_path, {"disable_radix_cache": 1}, what) == ()
    assert met(tmp_path, {"disable_radix_cache": "any"}, what) == ("disable-radix-cache-on",)


def test_a_variable_of_the_environment_is_a_text(tmp_path):
    what = campaign(axes={"NCCL_ALGO": ["Ring", None]})

    assert met(tmp_path, {"NCCL_ALGO": "Ring"}, what) == ("NCCL-ALGO-Ring",)
    assert met(tmp_path, {"NCCL_ALGO": None}, what) == ("base",)


def test_a_named_environment_counts_among_several(tmp_path):
    what = campaign(
        axes={"environment": [None, "a+b"]},
        environments={"a": {"X_A": "1"}, "b": {"X_B": "1"}},
    )

    assert met(tmp_path, {"environment": "b"}, what) == ("a-b",)
    assert met(tmp_path, {"environment": None}, what) == ("base",)


def test_oea_is_on_or_off_or_one_setting(tmp_path):
    what = with_plugin(axes={"oea": ["off", {"k0": 1}, {"k0": 2, "p": 0.5}]})

    assert met(tmp_path, {"oea": "any"}, what) == ("oea1", "oea2-p0.5")
    assert met(tmp_path, {"oea": {"k0": 1}}, what) == ("oea1",)
    assert met(tmp_path, {"oea": {"k0": 2}}, what) == ()
    assert met(tmp_path, {"oea": "off"}, what) == ("oea-off",)


def test_without_the_axis_oea_is_off(tmp_path):
    assert met(tmp_path, {"oea": "any"}, campaign()) == ()
    assert met(tmp_path, {"oea": "off"}, campaign()) == ("tp1",)


def test_the_engine_is_met_by_its_name(tmp_path):
    assert met(tmp_path, {"engine": "standin"}, campaign()) == ("tp1",)
    assert met(tmp_path, {"engine": "other"}, campaign()) == ()


def test_a_load_point_is_met_by_its_concurrency(tmp_path):
    assert met(tmp_path, {"concurrency": {"at_least": 3072}}, campaign(), {1, 4096}) == ("tp1",)
    assert met(tmp_path, {"concurrency": {"at_least": 3072}}, campaign(), {1, 2048}) == ()
    assert met(tmp_path, {"concurrency": 2}, campaign(), ()) == ()


def test_a_claim_that_no_cell_repeats_meets_none(tmp_path):
    assert met(tmp_path, [], campaign()) == ()
