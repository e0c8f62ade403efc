"""Foreign values: a number is a number, and what is none is never 0."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgmatrix.load.foreign.values import at, count, number, rest, text


@pytest.mark.parametrize(
    ("value", "want"),
    [(1, 1.0), (0.5, 0.5), ("0.5", 0.5), (0, 0.0), (-2, -2.0), ("1e3", 1000.0)],
)
def test_numbers_are_read_also_from_texts(value, want):
    assert number(value) == want


@pytest.mark.parametrize(
    "value",
    [None, True, False, "", "inf", "nan", "trace", math.inf, math.nan, [], {}, 10**400, "1,5"],
)
def test_what_is_no_number_is_none_and_not_zero(value):
    assert number(value) is None
    assert count(value) is None


@pytest.mark.parametrize(
    ("value", "want"), [(8, 8), (8.0, 8), ("8", 8), (0, 0), (8.5, None), (-1, None), (2**31, None)]
)
def test_a_count_is_whole_and_fits_its_column(value, want):
    assert count(value) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (" sglang ", "sglang"),
        ("", None),
        ("  ", None),
        (7, None),
        (None, None),
        ("half \ud800 a pair", "half ? a pair"),
        ("http://u:SENTINEL@h/m", "http://***@h/m"),
    ],
)
def test_a_text_is_one_that_a_column_can_hold(value, want):
    assert text(value) == want


@pytest.mark.parametrize(
    ("path", "want"), [("a", {"b": 1}), ("a.b", 1), ("a.c", None), ("a.b.c", None), ("x.y", None)]
)
def test_a_path_leads_into_objects(path, want):
    assert at({"a": {"b": 1}}, path) == want


def test_the_rest_is_what_was_not_used_at_any_depth():
    data = {"a": 1, "b": {"c": 2, "d": {"e": 3}, "f": {"g": 4}}, "empty": {}}

    assert rest(data, frozenset({"a", "b.c", "b.f.g"})) == {"b": {"d": {"e": 3}}, "empty": {}}


def test_the_rest_is_strict_json():
    kept = rest({"rate": math.inf, "x": [math.nan, {"y": -math.inf}], "t": "inf"}, frozenset())

    assert kept == {"rate": "Infinity", "x": ["NaN", {"y": "-Infinity"}], "t": "inf"}
    json.dumps(kept, allow_nan=False)


def test_lists_with_a_value_per_request_leave_their_length():
    data = {"itls": [[0.1] * 50] * 8, "errors": ["SENTINEL"], "slos": [1, 2], "ttfts": None}

    assert rest(data, frozenset()) == {
        "itls": {"left_out": 8},
        "errors": {"left_out": 1},
        "slos": [1, 2],
        "ttfts": None,
    }


def test_no_secret_is_in_the_rest():
    kept = rest(
        {
            "server_info": {
                "api_key": "SENTINEL",
                "launch_command": "--model-path m --api-key SENTINEL --port 1",
                "argv": ["--api-key", "SENTINEL"],
                "internal_states": [{"admin_api_key": "SENTINEL"}],
                "url": "http://me:SENTINEL@host",
            },
            "extra_headers": {"Authorization": "Bearer SENTINEL"},
        },
        frozenset(),
    )

    assert "SENTINEL" not in json.dumps(kept)
    assert kept["server_info"]["launch_command"] == "--model-path m --api-key *** --port 1"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(data=st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_any_rest_can_be_written_strictly_and_keeps_its_keys(data):
    kept = rest(data, frozenset())

    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    assert kept.keys() == data.keys()
