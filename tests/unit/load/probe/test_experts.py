"""Distinct experts by step: only full decode steps count, whatever else the recorder saw."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load.probe import experts
from sgmatrix.load.probe.asked import ask_engine
from sgmatrix.load.probe.experts import batch_means, record_batches, step_rows

CELL = {"python": sys.executable, "env": {}, "flags": {}, "device": "cpu"}


# --- entries to rows -----------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """Give the entries of dumps in place of the engine's interpreter; what it was asked."""
    calls = []

    def counted(*entries):
        def ask(cell, name, arguments, extra):
            calls.append((name, arguments))
            return [list(one) for one in entries]

        monkeypatch.setattr(experts, "ask_engine", ask)
        return calls

    return counted


def test_only_steps_that_routed_the_whole_batch_count_and_are_numbered_by_layer(counted):
    counted(
        [
            *[[0, 32, 14, 16], [1, 32, 13, 16]],  # a prefill
            *[[0, 2, 6, 16], [1, 2, 7, 16]],
            *[[0, 2, 5, 16], [1, 2, 8, 16]],
            *[[0, 1, 4, 16], [1, 1, 4, 16]],  # one of the two had ended
        ]
    )

    rows = step_rows({2: Path("/two.pt")}, CELL, 4)

    assert [(r["step"], r["layer"], r["tokens"], r["activated"]) for r in rows] == [
        *[(0, 0, 2, 6), (0, 1, 2, 7)],
        *[(1, 0, 2, 5), (1, 1, 2, 8)],
    ]
    assert {(r["batch"], r["experts"], r["top_k"]) for r in rows} == {(2, 16, 4)}


def test_each_dump_belongs_to_its_batch(counted):
    calls = counted([[0, 1, 4, 16], [0, 8, 9, 16]], [[0, 8, 12, 16], [0, 1, 4, 16]])

    rows = step_rows({1: Path("/one.pt"), 8: Path("/eight.pt")}, CELL, 4)

    assert [(r["batch"], r["step"], r["activated"]) for r in rows] == [(1, 0, 4), (8, 0, 12)]
    assert calls == [("counts.py", [4, 1, Path("/one.pt"), Path("/eight.pt")])]


@pytest.mark.parametrize(
    ("flags", "ranks"),
    [({}, 1), ({"tp_size": 4}, 4), ({"tp_size": 2, "dp_size": 2}, 4), ({"tp_size": None}, 1)],
)
def test_counts_are_shared_out_over_the_ranks(counted, flags, ranks):
    calls = counted([])

    step_rows({1: Path("/one.pt")}, {**CELL, "flags": flags}, 8)

    assert calls[0][1][:2] == [8, ranks]


# --- rows to means -------------------------------------------------------------------------------


def row(batch, step, layer, activated):
    place = {"batch": batch, "step": step, "layer": layer, "tokens": batch}
    return {**place, "activated": activated, "experts": 16, "top_k": 4}


def test_the_mean_is_over_steps_and_layers_and_the_spread_over_the_steps_of_a_layer():
    rows = [row(2, 0, 0, 5), row(2, 1, 0, 7), row(2, 0, 1, 8), row(2, 1, 1, 8), row(1, 0, 0, 4)]

    means = batch_means(rows)

    assert list(means) == ["1", "2"]
    # 5 and 7: variance 1; 8 and 8: 0; the root of their mean
    assert means["2"] == {
        "activated_mean": 7.0,
        "activated_sd": pytest.approx(0.5**0.5),
        "steps": 2,
        "layers": 2,
        "experts": 16,
        "top_k": 4,
    }
    assert (means["1"]["activated_mean"], means["1"]["activated_sd"]) == (4.0, 0.0)


def test_layers_that_differ_are_no_spread():
    assert batch_means([row(2, 0, 0, 5), row(2, 0, 1, 9)])["2"]["activated_sd"] == 0.0


def test_without_rows_no_batch_has_a_mean():
    assert batch_means([]) == {}


# --- the recorder --------------------------------------------------------------------------------


class Recorder:
    """A server's recorder: notes what it is told, and dumps files as the test says."""

    def __init__(self, folder, dumps=1, status=200):
        self.folder, self.dumps, self.status = folder, dumps, status
        self.told, self.files = [], 0

    def request(self, port, method, path, body, *, timeout_s):
        assert (port, method) == (31000, "POST")
        what = path.strip("/").removesuffix("_expert_distribution_record")
        self.told.append(what)
        if what == "dump":
            for _ in range(self.dumps):
                self.files += 1
                (self.folder / f"expert_distribution_recorder_{self.files}.pt").touch()
        return self.status, b"no"


def record(monkeypatch, tmp_path, recorder, *, wave=None, batches=(1, 4)):
    monkeypatch.setattr(experts, "request", recorder.request)

    def run_wave(step, server, offer, folder, limit_s):
        recorder.told.append(f"wave of {offer.requests} at {offer.concurrency}, {limit_s:g} s")
        return wave or {"output_tok_s": 1.0}

    monkeypatch.setattr(experts, "run_wave", run_wave)
    points = [
        {
            "load_id": f"c{batch}",
            "concurrency": batch,
            "requests": batch,
            "request_rate": None,
            "max_concurrency": None,
            "dataset": "random-ids",
            "input_len": 8,
            "output_len": 4,
            "seed": 1,
        }
        for batch in batches
    ]
    spec = {"points": points, "deadlines": {"point_s": 20}}
    step = SimpleNamespace(folder=tmp_path)
    return record_batches(step, SimpleNamespace(port=31000), spec)


def test_the_recorder_watches_one_wave_of_each_batch_and_nothing_else(monkeypatch, tmp_path):
    recorder = Recorder(tmp_path)

    dumps, problem = record(monkeypatch, tmp_path, recorder)

    assert recorder.told == [
        *("start", "wave of 1 at 1, 20 s", "stop", "dump"),
        *("start", "wave of 4 at 4, 20 s", "stop", "dump"),
    ]
    assert {batch: path.name for batch, path in dumps.items()} == {
        1: "expert_distribution_recorder_1.pt",
        4: "expert_distribution_recorder_2.pt",
    }
    assert problem is None


@pytest.mark.parametrize("files", [0, 2])
def test_a_recorder_that_does_not_dump_one_file_is_a_failure(monkeypatch, tmp_path, files):
    _, problem = record(monkeypatch, tmp_path, Recorder(tmp_path, dumps=files))

    assert problem == {
        "status": "failed",
        "reason": "plugin_inactive",
        "detail": f"the expert recorder dumped {files} files at batch 1",
    }


def test_a_wave_that_fails_ends_the_probe_and_the_recording(monkeypatch, tmp_path):
    recorder = Recorder(tmp_path)
    wave = {"status": "failed", "reason": "client_crash", "detail": "why"}

    assert record(monkeypatch, tmp_path, recorder, wave=wave) == ({}, wave)
    assert recorder.told[-1] == "stop"


def test_a_recorder_that_refuses_is_named_with_its_words(monkeypatch, tmp_path):
    with pytest.raises(OSError, match="/start_expert_distribution_record answered 400: no"):
        record(monkeypatch, tmp_path, Recorder(tmp_path, status=400))


# --- the engine's interpreter --------------------------------------------------------------------


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script beside those of the probe."""
    from sgmatrix.load.probe import asked

    monkeypatch.setattr(asked, "__file__", str(tmp_path / "asked.py"))
    return tmp_path / "script.py"


def test_the_engine_s_interpreter_answers_in_json_with_its_own_environment(script, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/from/the/shell")
    script.write_text(
        "import json, os, sys\n"
        "print(json.dumps([sys.argv[1:], os.environ.get('PYTHONPATH'), os.environ['A'],"
        " os.environ['B']]))"
    )
    cell = {**CELL, "env": {"A": "1", "B": "2"}}

    assert ask_engine(cell, "script.py", [4, Path("/x.pt")], {"B": "3"}) == [
        ["4", "/x.pt"],
        None,
        "1",
        "3",
    ]


@pytest.mark.parametrize(
    ("code", "said"),
    [("raise SystemExit('no torch here')", "no torch here"), ("print('{')", "Expecting property")],
)
def test_one_that_does_not_answer_is_a_missing_engine(script, code, said):
    script.write_text(code)

    with pytest.raises(SgmatrixError, match=said) as caught:
        ask_engine(CELL, "script.py", [], {})
    assert caught.value.code == "engine_missing"
    assert "script.py of the probe failed" in str(caught.value)


def test_an_interpreter_that_is_not_there_is_a_missing_engine(script):
    with pytest.raises(SgmatrixError, match="/no/such/python") as caught:
        ask_engine({**CELL, "python": "/no/such/python"}, "script.py", [], {})
    assert caught.value.code == "engine_missing"
    assert json.dumps(str(caught.value))
