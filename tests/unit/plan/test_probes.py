"""Which cells are probed, beside which other one, and when a probe is asked for anew."""

import pytest

from builders import PROJECT, History, with_plugin
from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.plan.plan import make_plan

OEA = {"oea": ["off", {"k0": 2}]}


def probes(tmp_path, **changes):
    given = with_plugin(**{"axes": OEA, **changes})
    return make_plan(given, Layout(tmp_path / "results/made-up"), PROJECT).probes


def beside(tmp_path, **changes):
    return [(one.cell, one.reference) for one in probes(tmp_path, **changes)]


# --- which ---------------------------------------------------------------------------------------


def test_the_cell_with_oea_and_the_one_beside_it_are_probed_the_latter_first(tmp_path):
    axes = {"oea": [{"k0": 2}, "off"]}  # whatever the order of the axis

    assert beside(tmp_path, axes=axes) == [("oea-off", "oea-off"), ("oea2", "oea-off")]


def test_the_reference_is_the_same_cell_in_all_but_oea(tmp_path):
    axes = {**OEA, "parallelism": ["tp1", "tp2"]}

    assert beside(tmp_path, axes=axes, design="full") == [
        *[("tp1-oea-off", "tp1-oea-off"), ("tp2-oea-off", "tp2-oea-off")],
        *[("tp1-oea2", "tp1-oea-off"), ("tp2-oea2", "tp2-oea-off")],
    ]


def test_a_cell_with_nothing_beside_it_is_probed_alone(tmp_path):
    axes = {"oea": [{"k0": 2}, {"k0": 1}]}

    assert beside(tmp_path, axes=axes) == [("oea2", None), ("oea1", None)]


def test_one_reference_of_several_cells_is_probed_once(tmp_path):
    axes = {"oea": ["off", {"k0": 2}, {"k0": 1}]}

    assert beside(tmp_path, axes=axes) == [
        *[("oea-off", "oea-off"), ("oea2", "oea-off"), ("oea1", "oea-off")]
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": {"parallelism": ["tp1", "tp2"]}},
        {"axes": {"oea": ["off"]}},
        {"probe": {"experts": "off"}},
    ],
)
def test_without_oea_or_when_it_is_off_nothing_is_probed(tmp_path, changes):
    assert probes(tmp_path, **changes) == ()


def test_a_cell_that_is_repeated_alone_has_no_probe(tmp_path):
    given = with_plugin(axes=OEA)
    layout = Layout(tmp_path / "results/made-up")
    alone = make_plan(given, layout, PROJECT).reproduce["oea2"]

    again = make_plan(type(given).model_validate(alone), layout, PROJECT)

    assert again.probes == ()
    assert [one.cell for one in again.launches] == ["oea2"]


# --- what ----------------------------------------------------------------------------------------


def asked(tmp_path, **changes):
    one = probes(tmp_path, **changes)[0]
    return [(p.concurrency, p.request_rate, p.requests, p.output_len) for p in one.points]


def test_each_batch_size_is_one_wave_of_so_many_requests(tmp_path):
    assert asked(tmp_path) == [(1, None, 1, 32), (2, None, 2, 32)]
    assert asked(tmp_path, probe={"batches": [16, 4], "steps": 8}) == [
        (4, None, 4, 8),
        (16, None, 16, 8),
    ]


def test_loads_above_the_largest_batch_are_not_counted(tmp_path):
    load = {"concurrency": [1, 8, 64], "input_len": 16, "output_len": 4}

    assert [c for c, *_ in asked(tmp_path, load=load, probe={"max_batch": 8})] == [1, 8]


def test_a_load_with_no_concurrency_that_may_be_counted_has_one_request(tmp_path):
    load = {"concurrency": [64], "input_len": 16, "output_len": 4}
    rates = {"request_rate": [2.0], "input_len": 16, "output_len": 4}

    assert asked(tmp_path, load=load, probe={"max_batch": 8}) == [(1, None, 1, 32)]
    assert asked(tmp_path, load=rates) == [(1, None, 1, 32)]


@pytest.mark.parametrize(
    ("input_len", "batches", "want"),
    [
        (16, [1, 2, 8], 16),
        (16, [1, 16], 17),  # one prompt would look like a step of 16
        (16, [1, 32, 34], 18),  # two would look like one of 32, two of 17 like one of 34
        (1, [1, 2, 3], 4),
        (300, [1, 256], 300),
    ],
)
def test_no_prefill_has_as_many_tokens_as_a_step_that_is_counted(
    tmp_path, input_len, batches, want
):
    load = {"concurrency": [1], "input_len": input_len, "output_len": 4}
    (one, _) = probes(tmp_path, load=load, probe={"batches": batches})

    assert {point.input_len for point in one.points} == {want}


def test_only_a_probe_has_the_recorder_and_its_processor(tmp_path):
    given = with_plugin(axes=OEA)
    plan = make_plan(given, Layout(tmp_path / "results/made-up"), PROJECT)

    assert {one.arguments for one in plan.probes} == {
        (
            *("--expert-distribution-recorder-mode", "stat"),
            *("--expert-distribution-recorder-buffer-size", "-1"),
            "--enable-custom-logit-processor",
        )
    }
    assert not any("expert" in word for one in plan.cells.values() for word in one.arguments)


# --- when ----------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path):
    """A history in which the probes' first attempts are complete."""
    history = History(tmp_path, with_plugin(axes=OEA))
    for one in history.plan["probes"]:
        finish(history, one)
    return history


def finish(history, planned, *, attempt=1, asked=None, **record):
    folder = history.layout.attempt(planned["cell"], "probe", attempt)
    write_json(folder / "teardown.json", {"asked_attempt": asked or attempt})
    write_json(folder / "probe.json", {"key": planned["key"], **record})


def attempts(history, **changes):
    given = with_plugin(**{"axes": OEA, **changes})
    return {one.cell: one.attempt for one in make_plan(given, history.layout, PROJECT).probes}


def test_a_probe_that_is_there_is_not_asked_for_again(made):
    assert attempts(made) == {"oea-off": 1, "oea2": 1}
    # one that was asked for as the first, and interrupted twice before it was there
    (off, _) = made.plan["probes"]
    finish(made, off, attempt=3, asked=1)
    assert attempts(made) == {"oea-off": 1, "oea2": 1}


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"deadlines": {"point_s": 21}}, (1, 1)),  # nothing of what is measured
        ({"launches": 3}, (1, 1)),
        ({"probe": {"steps": 33}}, (2, 2)),
        ({"probe": {"prompts": 4}}, (2, 2)),
        ({"probe": {"tokens": 12}}, (2, 2)),
        ({"probe": {"batches": [1, 2, 4]}}, (2, 2)),
        ({"probe": {"batches": [1, 2]}}, (1, 1)),  # what the load has anyway
    ],
)
def test_a_probe_of_other_measurements_is_a_new_attempt(made, change, want):
    assert tuple(attempts(made, **change).values()) == want


def test_a_reference_that_is_another_server_makes_its_judges_anew(made):
    other = [{"where": {"oea": "off"}, "flags": {"standin_stop_ms": 1}}]

    assert attempts(made, overrides=other) == {"oea-off": 2, "oea2": 2}
    other[0]["where"] = {"oea": {"k0": 2}}
    assert attempts(made, overrides=other) == {"oea-off": 1, "oea2": 2}


def test_a_cell_with_another_k0_is_another_cell(made):
    assert attempts(made, axes={"oea": ["off", {"k0": 1}]}) == {"oea-off": 1, "oea1": 1}


@pytest.mark.parametrize("gone", ["teardown.json", "probe.json"])
def test_an_interrupted_probe_is_repeated(made, gone):
    (made.layout.attempt("oea2", "probe", 1) / gone).unlink()

    assert attempts(made) == {"oea-off": 1, "oea2": 2}
