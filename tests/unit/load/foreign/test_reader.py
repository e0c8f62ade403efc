"""What files of results look like: all that the tools write is read, what is cut off is not."""

import json
import math

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.foreign.reader import read_file, results


def read(text):
    data = text if isinstance(text, bytes) else text.encode()
    return [(one.line, one.item, one.data) for one in results("r.jsonl", data)]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('{"a": 1}', [(1, 1, {"a": 1})]),
        ('{"a": 1}\n{"a": 2}\n', [(1, 1, {"a": 1}), (2, 2, {"a": 2})]),
        ('\n\n{"a": 1}\n\n\n{"a": 2}', [(3, 1, {"a": 1}), (6, 2, {"a": 2})]),
        ('\ufeff{"a": 1}\r\n\r\n{"a": 2}\r\n', [(1, 1, {"a": 1}), (3, 2, {"a": 2})]),
        ('{\n "a": {\n  "b": 1}\n}\n{"a": 2}', [(1, 1, {"a": {"b": 1}}), (5, 2, {"a": 2})]),
        ('\n[{"a": 1},\n {"a": 2}]', [(2, 1, {"a": 1}), (2, 2, {"a": 2})]),
    ],
)
def test_results_are_read_with_the_line_where_they_begin(text, want):
    assert read(text) == want


def test_what_python_s_json_writes_beyond_json_is_read():
    ((_, _, data),) = read('{"a": Infinity, "b": -Infinity, "c": NaN, "d": "inf", "e": "trace"}')

    assert (data["a"], data["b"]) == (math.inf, -math.inf)
    assert math.isnan(data["c"])
    assert (data["d"], data["e"]) == ("inf", "trace")


WHOLE = json.dumps({"duration": 10.25, "completed": 64, "name": "a long enough text"})


@pytest.mark.parametrize("cut", [1, 5, 14, 20, 30, len(WHOLE) - 4, len(WHOLE) - 1])
def test_a_line_that_ends_in_the_middle_is_refused_with_its_number(cut):
    with pytest.raises(SgmatrixError, match=r"^result_unreadable: r\.jsonl:2: ") as caught:
        read(f"{WHOLE}\n{WHOLE[:cut]}")

    assert caught.value.code == "result_unreadable"
    assert caught.value.fix


def test_a_text_that_ends_in_the_middle_says_so():
    with pytest.raises(SgmatrixError, match=r"r\.jsonl:1: ends in the middle; fix: its run was"):
        read('{"duration": 10.25, "compl')


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "r.jsonl: holds no result"),
        (" \n\r\n\ufeff"[:3], "r.jsonl: holds no result"),
        ("[]", "r.jsonl: holds no result"),
        ("17", "r.jsonl:1: a result is an object, not int"),
        ('\n[{}, "x"]', "r.jsonl:2: a result is an object, not str"),
        ('{"a": 1} tail', "r.jsonl:1: no JSON: Expecting value, line 1, column 10"),
        ("[" * 100_000, "r.jsonl:1: no JSON that can be read"),
        (b"\xff\xfe{\x00", "r.jsonl: byte 0 is not UTF-8"),
        (b"PAR1\x00\x15", "r.jsonl:1: no JSON"),
    ],
)
def test_what_is_no_result_is_refused_and_named(text, problem):
    with pytest.raises(SgmatrixError) as caught:
        read(text)

    assert caught.value.facts.startswith(problem)
    assert caught.value.code == "result_unreadable"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SgmatrixError, match=r"gone\.jsonl: No such file") as caught:
        read_file(tmp_path / "gone.jsonl")

    assert caught.value.code == "result_unreadable"
