"""When a probe counts as measured, and what is said where it does not."""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from builders import History, with_plugin
from sgmatrix.core.files import read_json, write_json
from sgmatrix.core.layout import Layout
from sgmatrix.load.probe import run

TEXTS = [{"prompt": [2, 3], "answer": [4, 5, 6]}]
LOGPROBS = [[-1.0, -3.0]]


class Probed:
    """A cell that is probed: what its ranks count, what its server answers."""

    def __init__(self, tmp_path, monkeypatch):
        self.layout = Layout(tmp_path)
        self.calls = iter([[3, 5], [9, 7]])  # of two ranks, before and after
        self.unproven = iter(())
        self.asked = []
        self.answer = LOGPROBS
        for name in ("own_words", "forced_logprobs", "prove"):
            monkeypatch.setattr(run, name, getattr(self, name))

    def own_words(self, server, **how):
        self.asked.append(how)
        return TEXTS

    def forced_logprobs(self, server, texts):
        self.asked.append(texts)
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer

    def prove(self, server, cell):
        ranks = next(self.calls)
        said = next(self.unproven, None)
        return None if ranks is None else [{"calls": calls} for calls in ranks], said

    def quality(self, cell="on", *, reference="off", prompts=8):
        step = SimpleNamespace(layout=self.layout, cell=cell, folder=Path("/none"))
        spec = {"cell": {"id": cell}, "points": [{"seed": 7}]}
        planned = {"prompts": prompts, "reference": reference, "tokens": 24}
        plan = {"client": {"vocab_size": 500}}
        return run._quality(step, SimpleNamespace(port=1), spec, planned, plan)

    def texts(self, texts):
        write_json(self.layout.launch("off", "probe") / "probe.json", {"texts": texts})


@pytest.fixture
def probed(tmp_path, monkeypatch):
    return Probed(tmp_path, monkeypatch)


def test_the_reference_writes_its_own_texts_and_judges_them(probed):
    probed.calls = iter([[], []])  # no plug-in that is on

    quality, words = probed.quality("off")

    assert words == TEXTS
    how, texts = probed.asked
    assert (how["prompts"], how["tokens"], how["vocab"], how["seed"]) == (8, 24, 500, 7)
    assert texts == TEXTS
    assert quality == {
        "tokens": 2,
        "logprob_mean": -2.0,
        "logprob_by_text": [-2.0],
        "reference": "off",
        "calls": [[], []],
    }


def test_another_cell_judges_the_texts_of_its_reference_and_writes_none(probed):
    probed.texts(TEXTS)

    quality, words = probed.quality()

    assert probed.asked == [TEXTS]
    assert words is None
    assert (quality["logprob_mean"], quality["reference"]) == (-2.0, "off")
    assert quality["calls"] == [[3, 5], [9, 7]]


@pytest.mark.parametrize(
    ("after", "said"), [([9, 5], r"\[3, 5\] to \[9, 5\]"), ([2, 7], r"to \[2, 7\]")]
)
def test_without_decode_calls_of_every_rank_meanwhile_nothing_was_measured(probed, after, said):
    probed.texts(TEXTS)
    probed.calls = iter([[3, 5], after])

    quality, _ = probed.quality()

    assert quality.keys() == {"not_measured"}
    assert re.search(f"OEA did not run meanwhile: calls .*{said}", quality["not_measured"])


@pytest.mark.parametrize(
    ("calls", "unproven"),
    [
        ([[3, 5], [9]], (None, "1 of 2 ranks answered")),  # one that hangs
        ([[3], [9, 7]], ("1 of 2 ranks answered", None)),
        ([[], []], ("1 of 2 ranks answered", "1 of 2 ranks answered")),
        ([[], []], ("1 of 2 ranks answered", None)),
    ],
)
def test_where_a_rank_does_not_prove_itself_nothing_was_measured(probed, calls, unproven):
    probed.texts(TEXTS)
    probed.calls = iter(calls)
    probed.unproven = iter([why and {"detail": why} for why in unproven])

    quality, _ = probed.quality()

    assert quality == {"not_measured": "OEA is not proven there: 1 of 2 ranks answered"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"prompts": 0}, "probe.prompts is 0"),
        ({"reference": None}, "no cell is the same with OEA off"),
    ],
)
def test_what_is_not_asked_for_is_not_measured_and_says_so(probed, changes, why):
    assert probed.quality(**changes) == ({"not_measured": why}, None)
    assert probed.asked == []


def test_a_reference_that_wrote_nothing_leaves_nothing_to_judge(probed):
    probed.texts(None)

    assert probed.quality() == ({"not_measured": "off has written no text"}, None)


def test_a_server_that_forces_no_token_keeps_its_counts_and_says_why(probed):
    """No fault of the server: what the recorder counted stands, and so do the texts."""
    probed.answer = OSError("/generate answered 400: no processor")

    assert probed.quality("off") == (
        {"not_measured": "/generate answered 400: no processor"},
        TEXTS,
    )


# --- the whole probe, in a launch that the test makes up -----------------------------------------


@pytest.fixture
def launched(tmp_path, monkeypatch):
    """Probe `oea2` in a launch that became what the test says; its record and its rows."""
    made = History(tmp_path, with_plugin(axes={"oea": ["off", {"k0": 2}]}))
    planned = next(one for one in made.plan["probes"] if one["cell"] == "oea2")
    folder = made.layout.attempt("oea2", "probe", 1)
    spec = {
        "campaign": "made-up",
        "cell": {"key": "k", "id": "oea2"},
        "attempt": 1,
        "points": planned["points"],
    }
    write_json(folder / "spec.json", spec)
    server = SimpleNamespace(
        in_use=contextlib.nullcontext, failure=lambda _limit_s: None, attempt_dir=folder
    )
    monkeypatch.setattr(run.Server, "from_record", lambda record: server)

    def launched(probe=None, *, live=True, **ended):
        started = {"attempt_dir": str(folder), "reason": None, "live": {} if live else None}
        started |= {} if live else {"reason": ended["reason"]}
        final = {"status": "ok", "reason": None, "detail": None, **ended}
        final |= {"cell": "oea2", "attempt": 1, "finished_at": "2026-11-30T10:00:00Z"}
        monkeypatch.setattr(run, "run_launch", lambda *_: started)
        monkeypatch.setattr(run, "run_teardown", lambda *_: final)
        monkeypatch.setattr(run, "_probe", probe)
        assert run.run_probe(made.layout, "oea2") == folder
        record = read_json(folder / "probe.json")
        assert (record["key"], record["reference"]) == (planned["key"], "oea-off")
        return record, pq.read_table(folder / "experts.parquet").to_pylist()

    return launched


ROW = {"batch": 1, "step": 0, "layer": 0, "tokens": 1, "activated": 4, "experts": 16, "top_k": 4}


def test_a_probe_that_goes_well_is_its_record_and_its_rows(launched):
    record, rows = launched(lambda *_: ({"status": "ok", "reason": None, "batches": {}}, [ROW]))

    assert (record["status"], record["cell"], record["attempt"]) == ("ok", "oea2", 1)
    identity = {"campaign": "made-up", "cell": "oea2", "cell_key": "k", "attempt": 1}
    assert rows == [{**identity, **ROW}]


def test_a_server_that_never_was_ready_is_a_failed_probe_without_rows(launched):
    record, rows = launched(
        live=False, status="failed", reason="oom_weights", detail="CUDA out of memory"
    )

    assert [record[name] for name in ("status", "reason", "detail")] == [
        *("failed", "oom_weights", "CUDA out of memory")
    ]
    assert rows == []


def test_how_a_server_ended_says_more_than_that_it_did_not_answer(launched):
    def silent(*_):
        raise OSError("connection refused")

    dead = {"status": "failed", "reason": "oom_runtime", "detail": "the root line"}
    record, rows = launched(silent, **dead)
    assert {name: record[name] for name in dead} == dead
    assert rows == []

    record, _ = launched(silent)
    assert (record["status"], record["reason"], record["detail"]) == (
        *("failed", "client_crash"),  # the server lives: that it crashed cannot be said
        "connection refused",
    )
