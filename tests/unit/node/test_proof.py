"""What counts as proof that a plug-in runs in every rank, and what does not."""

import json
import threading

import pytest

from sgmatrix.node.proof import ask_ranks, proof_record, stray_answers, why_unproven

ASKED = {"k0": 2, "fill": "distinct"}


def answer(rank=0, **changes):
    said = {"answers": "n", "tp_rank": rank, "pp_rank": 0, "dp_rank": None, "pid": 100 + rank}
    said |= {"calls": 12, "k0": 2, "fill": "distinct", "check": {"ok": True, "problem": None}}
    return said | changes


def why(*answers, ranks=None, decoded=True):
    return why_unproven(answers, ranks or len(answers), ASKED, decoded=decoded)


def test_every_rank_that_was_called_is_proof():
    assert why(answer(0), answer(1)) is None


@pytest.mark.parametrize(
    ("answers", "ranks", "want"),
    [
        ([], 1, "0 of 1 ranks answered that the plug-in runs"),
        ([answer(0)], 2, "1 of 2 ranks answered that the plug-in runs"),
        ([answer(0), answer(1, k0=4)], 2, "rank tp1 runs with k0 = 4, asked was 2"),
        ([answer(0, fill=None)], 1, "rank tp0 runs with fill = None, asked was 'distinct'"),
        ([answer(0, calls=0)], 1, "rank tp0 was never called in a decode step"),
        (
            [answer(3, dp_rank=1, pp_rank=2, check={"ok": False, "problem": "expert 7"})],
            1,
            "rank dp1 pp2 tp3: its core is not the reference: expert 7",
        ),
        ([answer(0, check={"ok": None})], 1, "rank tp0 has not compared its core"),
    ],
)
def test_anything_less_says_why(answers, ranks, want):
    assert why(*answers, ranks=ranks).startswith(want)


def test_before_the_first_decode_step_calls_are_not_asked_for():
    fresh = answer(calls=0, check={"ok": None})

    assert why(fresh, decoded=False) is None
    assert "k0" in why(fresh | {"k0": 3}, decoded=False)


def test_only_answers_to_this_question_count(tmp_path):
    (tmp_path / "rank-1.json").write_text(json.dumps(answer(0, answers="of before")))
    (tmp_path / "rank-2.json").write_text("{")

    assert ask_ranks(tmp_path, 1, limit_s=0.2) == []
    assert stray_answers(tmp_path) == ["rank-1.json", "rank-2.json"]


def test_ranks_are_told_in_their_order(tmp_path):
    def ranks():
        while not (tmp_path / "ask").exists():
            pass
        nonce = (tmp_path / "ask").read_text().strip()
        for rank in (1, 0):
            part = tmp_path / f"part-{rank}"
            part.write_text(json.dumps(answer(rank, answers=nonce)))
            part.rename(tmp_path / f"rank-{rank}.json")

    thread = threading.Thread(target=ranks)
    thread.start()
    found = ask_ranks(tmp_path, 2, limit_s=20)
    thread.join()

    assert [one["tp_rank"] for one in found] == [0, 1]


def test_a_record_keeps_what_is_worth_keeping():
    (kept,) = proof_record([answer(0, status_dir="/somewhere")])

    assert kept["calls"] == 12
    assert not {"answers", "status_dir"} & kept.keys()
