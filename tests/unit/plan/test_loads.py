"""The load points of a launch: what is offered, how much of it, with which seed and key."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from builders import PROJECT, campaign, campaign_data
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.plan import loads
from sgmatrix.plan.loads import derive_seed
from sgmatrix.plan.plan import make_plan

AB = {"parallelism": ["tp1", "tp2"]}


def plan(tmp_path, what=None):
    what = what or campaign()
    return make_plan(what, Layout(tmp_path / "results" / what.campaign), PROJECT)


def points(tmp_path, **load):
    """The points of the one launch of a campaign with this load."""
    base = {"input_len": 16, "output_len": 4}
    return plan(tmp_path, campaign(load={**base, **load})).launches[0].points


def test_a_load_point_says_what_is_offered(tmp_path):
    load = {
        "concurrency": [64, 1],
        "input_len": 256,
        "output_len": 128,
        "requests": {"min": 10, "per_concurrency": 2},
        "seed": 7,
    }

    points = plan(tmp_path, campaign(load=load)).launches[0].points

    assert [point.load_id for point in points] == [
        "c0001-i256-o128-random-ids",
        "c0064-i256-o128-random-ids",
    ]
    assert [point.requests for point in points] == [10, 128]
    assert (points[1].concurrency, points[1].input_len, points[1].output_len) == (64, 256, 128)
    assert points[1].seed == derive_seed(7, "1", "c0064-i256-o128-random-ids")


def test_a_seed_is_the_first_31_bits_of_a_hash_over_campaign_seed_launch_and_load():
    digest = hashlib.sha256(b"7/2/c0001-i16-o4-random-ids").hexdigest()

    assert derive_seed(7, "2", "c0001-i16-o4-random-ids") == int(digest[:8], 16) // 2


@given(st.integers(0, 2**31 - 1), st.integers(1, 99), st.text(max_size=20))
def test_any_seed_is_one_that_the_clients_take(seed, launch, load):
    assert 0 <= derive_seed(seed, str(launch), load) < 2**31


def test_all_cells_get_the_same_seeds_and_every_launch_and_load_its_own(tmp_path):
    seeds = {}
    for launch, point in plan(tmp_path, campaign(axes=AB, launches=3)).points():
        seeds.setdefault((launch.launch, point.load_id), []).append(point.seed)

    assert {len(set(of_cells)) for of_cells in seeds.values()} == {1}
    assert {len(of_cells) for of_cells in seeds.values()} == {2}
    assert len({of_cells[0] for of_cells in seeds.values()}) == 3 * 2


def test_a_point_s_key_changes_with_cell_load_seed_client_and_harness(tmp_path, monkeypatch):
    def keys(**changes):
        return [point.key for _, point in plan(tmp_path, campaign(**changes)).points()]

    base = keys()
    load = campaign_data()["load"]
    other = {
        "cell": keys(axes={"parallelism": ["tp2"]}),
        "requests": keys(load={**load, "requests": {"min": 9}}),
        "length": keys(load={**load, "output_len": 5}),
        "seed": keys(load={**load, "seed": 2}),
        "warmup": keys(warmup={"max_waves": 0}),
    }
    monkeypatch.setattr(loads, "HARNESS_VERSION", 99)
    other["harness"] = keys()

    assert len({*base, *(key for some in other.values() for key in some)}) == 7 * 2
    monkeypatch.undo()
    assert keys(campaign="another", study="x", node={"gpus": 3}) == base


# --- open loop and durations ---------------------------------------------------------------------


def test_rates_are_load_points_of_their_own_after_the_closed_loop(tmp_path):
    found = points(
        tmp_path, concurrency=[2], request_rate=[10, 0.5], max_concurrency=64, burstiness=0.5
    )

    assert [(p.load_id, p.concurrency, p.request_rate) for p in found] == [
        ("c0002-i16-o4-random-ids", 2, None),
        ("r0.5-i16-o4-random-ids", None, 0.5),
        ("r10-i16-o4-random-ids", None, 10.0),
    ]
    assert [(p.max_concurrency, p.burstiness) for p in found] == [(None, 1.0), (64, 0.5), (64, 0.5)]
    assert [p.requests for p in found] == [8, 8, 40]  # at least 8, else 4 seconds of the rate


def test_a_duration_says_how_many_requests_a_rate_has(tmp_path):
    (found,) = points(tmp_path, request_rate=[2.5], requests={"min": 1, "duration_s": 3.0})

    assert found.requests == 8  # 7.5, and no less


def test_how_many_requests_a_closed_loop_takes_for_a_duration_only_the_server_knows(tmp_path):
    (found,) = points(tmp_path, concurrency=[16], requests={"min": 4, "duration_s": 15.0})

    assert (found.requests, found.duration_s, found.min_requests) == (None, 15.0, 16)


@pytest.mark.parametrize(
    "change",
    [
        {"burstiness": 0.5},
        {"max_concurrency": 7},
        {"requests": {"duration_s": 9.0}},
        {"request_rate": [3.0]},
        {"output_len": 5},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_an_open_loop_changes_its_key(tmp_path, change):
    base = {"request_rate": [2.0], "max_concurrency": 8}

    assert points(tmp_path, **base)[0].key != points(tmp_path, **{**base, **change})[0].key


def test_how_the_open_loop_arrives_is_nothing_to_the_closed_one(tmp_path):
    both = {"concurrency": [2], "request_rate": [1.0]}

    assert points(tmp_path, **both)[0].key == points(tmp_path, **both, burstiness=3.0)[0].key


def test_an_objective_changes_no_measurement(tmp_path):
    (plain,) = points(tmp_path, concurrency=[2])
    (judged,) = points(tmp_path, concurrency=[2], slo={"ttft_ms": 200.0})

    assert judged.slo == {"ttft_ms": 200.0}
    assert judged.key == plain.key


# --- prompts -------------------------------------------------------------------------------------


def test_a_prefix_is_part_of_the_key(tmp_path):
    def key(prefix):
        load = {"dataset": "shared-prefix", "shared_prefix": {"prefix_len": prefix}}
        (found,) = points(tmp_path, concurrency=[2], **load)
        assert found.prompts == {"groups": 4, "prefix_len": prefix}
        assert found.load_id == "c0002-i16-o4-shared-prefix"
        return found.key

    assert key(8) != key(12)


def test_a_file_of_prompts_is_known_by_its_content(tmp_path):
    file = tmp_path / "prompts.jsonl"

    def key(*prompts):
        file.write_text("".join(f'{{"prompt": "{text}"}}\n' for text in prompts))
        load = {
            "dataset": "custom",
            "path": str(file),
            "requests": {"min": 1, "per_concurrency": 1},
        }
        return points(tmp_path, concurrency=[2], **load)[0].key

    first = key("a b", "c d")
    assert key("a b", "c d") == first
    assert key("a b", "c e") != first


def test_a_file_with_too_few_prompts_is_refused_before_any_launch(tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "a b"}\n{"prompt": "c d"}\n')
    load = {"concurrency": [2, 16], "dataset": "custom", "path": str(file)}

    with pytest.raises(SgmatrixError, match="holds 2 prompts, c0016-i16-o4-custom needs 64"):
        points(tmp_path, **load)


def test_a_duration_of_a_closed_loop_needs_a_warm_up():
    load = {"input_len": 16, "output_len": 4, "requests": {"duration_s": 9.0}}

    with pytest.raises(ValidationError, match="of a closed loop needs a warm-up"):
        campaign(load={**load, "concurrency": [1]}, warmup={"max_waves": 0})
    campaign(load={**load, "request_rate": [1.0]}, warmup={"max_waves": 0})


def test_other_lengths_are_further_points_of_the_same_launch(tmp_path):
    load = {
        "concurrency": [1, 8],
        "input_len": 16,
        "output_len": 4,
        "also": [
            {"input_len": 32, "output_len": 8},
            {"input_len": 16, "output_len": 2, "concurrency": [2]},
        ],
    }
    (launch,) = plan(tmp_path, campaign(load=load)).launches
    assert [point.load_id for point in launch.points] == [
        "c0001-i16-o4-random-ids",
        "c0008-i16-o4-random-ids",
        "c0001-i32-o8-random-ids",
        "c0008-i32-o8-random-ids",
        "c0002-i16-o2-random-ids",
    ]
    assert len({point.key for point in launch.points}) == 5
    assert len({point.seed for point in launch.points}) == 5


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"also": [{"input_len": 16, "output_len": 4}]}, "lengths that stand there already"),
        (
            {"concurrency": [], "request_rate": [1.0], "also": [{"input_len": 9, "output_len": 9}]},
            "also is of the closed loop",
        ),
        (
            {"dataset": "topical", "also": [{"input_len": 16, "output_len": 3}]},
            "output_len is at least 4",
        ),
        (
            {
                "dataset": "shared-prefix",
                "shared_prefix": {"prefix_len": 12},
                "also": [{"input_len": 12, "output_len": 4}],
            },
            "prefix_len must be less than input_len",
        ),
    ],
)
def test_other_lengths_keep_the_rules_of_the_load(changes, problem):
    load = {"concurrency": [1], "input_len": 16, "output_len": 4, **changes}
    with pytest.raises(ValueError, match=problem):
        campaign(load=load)


def test_a_length_over_the_context_is_refused_wherever_it_stands(tmp_path):
    load = {"concurrency": [1], "input_len": 16, "output_len": 4}
    load["also"] = [{"input_len": 4000, "output_len": 97}]
    with pytest.raises(SgmatrixError, match=r"input_len 4000 \+ load\.output_len 97 is over"):
        plan(tmp_path, campaign(load=load))
