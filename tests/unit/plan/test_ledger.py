"""The ledger's file: what it may hold, and where a campaign looks for it."""

import pytest

from builders import PROJECT, campaign, campaign_data
from ledger_entries import entry_data
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.layout import Layout
from sgmatrix.core.yaml_strict import yaml_text
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.ledger import DEFAULT_LEDGER, bounds_of, ledger_digest, ledger_file, read_ledger
from sgmatrix.plan.plan import make_plan

OURS = PROJECT / DEFAULT_LEDGER
KEY = "a" * 64


@pytest.fixture
def write(tmp_path):
    def write(*entries):
        file = tmp_path / "ledger.yaml"
        file.write_text(yaml_text({"entries": list(entries)}))
        return file

    return write


# --- the entries of this project ------------------------------------------------------------------


def test_our_ledger_holds_the_findings_the_next_steps_and_the_contradictions():
    entries = {one.id: one for one in read_ledger(OURS)}

    assert len(entries) == 26  # 15 findings, 5 next steps, 6 contradictions
    status = {name: one.status for name, one in entries.items()}
    assert status["tp4pp2"] == status["ep8"] == status["next-lower-mem-fraction"] == "ruled_out"
    assert (status["oea"], status["no-cuda-graph"]) == ("neutral", "open")
    assert (status["no-cap-of-64"], status["no-radix-cache"]) == ("helped", "workaround")
    assert entries["ep8"].effect.percent == -5
    # 2095 / 1640
    assert entries["running-2048-steps-8"].effect.percent == pytest.approx(27.7, abs=0.05)
    assert all(one.conditions.model == "GLM-5-NVFP4" for one in entries.values())
    assert all(one.conditions.gpus == 8 for one in entries.values())


def test_only_what_was_found_with_a_known_build_names_it():
    named = {one.id for one in read_ledger(OURS) if one.conditions.engine_commit}

    assert named == {"ep8", "cutedsl"}


# --- what a file may hold ------------------------------------------------------------------------


def test_an_entry_is_read_with_its_alternatives(write):
    either = [{"decode_steps": [8, 16]}, {"parallelism": "tp2"}]
    one, other = read_ledger(write(entry_data(), entry_data(id="b", applies_to=either)))

    assert one.applies_to == [{"parallelism": "tp2"}]
    assert other.applies_to == either
    assert one.evidence[0].section == "Section 2"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"statsu": "open"}, "entries[0].statsu: unknown key, did you mean 'status'?"),
        ({"status": "dead"}, "entries[0].status = 'dead'"),
        ({"claim": ""}, "entries[0].claim = ''"),
        ({"date": "2026-13-01"}, "entries[0].date = '2026-13-01': month must be in 1..12"),
        ({"date": "20261101"}, "a day is written as 2026-11-29"),
        ({"evidence": []}, "entries[0].evidence"),
        ({"evidence": [{"section": "1"}]}, "give the key of a cell, or a reference"),
        ({"evidence": [{"key": KEY}]}, "a key needs the campaign and the cell"),
        ({"evidence": [{"key": KEY[1:], "cell": "a", "campaign": "b"}]}, "evidence[0].key"),
        ({"effect": {"text": "x", "percent": 1.0}}, "percent needs the metric"),
        ({"effect": {"text": "x", "metric": "m", "low_percent": 1.0}}, "an interval has two ends"),
        (
            {"effect": {"text": "x", "metric": "m", "low_percent": 1.0, "high_percent": 2.0}},
            "an interval needs percent",
        ),
        (
            {
                "effect": {
                    "text": "x",
                    "metric": "m",
                    "percent": 1.0,
                    "low_percent": 2.0,
                    "high_percent": 1.0,
                }
            },
            "low_percent = 2 is above high_percent = 1",
        ),
        ({"applies_to": {}}, "names no axis"),
        ({"applies_to": {"tp-size": 2}}, "axis 'tp-size'"),
        ({"applies_to": {"parallelism": "tp0"}}, "axes.parallelism: 'tp0' is not a bundle"),
        ({"applies_to": [{"oea": {"k1": 2}}]}, "axes.oea.k0"),
        ({"applies_to": {"concurrency": "many"}}, "concurrency: 'many' is no whole number"),
        ({"applies_to": {"mem_fraction": {"below": "1"}}}, "the bound '1' is no number"),
        ({"note": "see api_key=sk-abcdefghijklmnopqrstuvwxyz"}, "holds a secret"),
    ],
)
def test_what_it_may_not_hold_is_named_with_its_place(write, changes, told):
    file = write({**entry_data(), **changes})

    with pytest.raises(SgmatrixError) as caught:
        read_ledger(file)

    assert caught.value.code == "ledger_rejected"
    assert told in str(caught.value), str(caught.value)
    assert str(file) in str(caught.value)


def test_a_name_stands_once(write):
    with pytest.raises(SgmatrixError, match="two entries are named tp2-slower"):
        read_ledger(write(entry_data(), entry_data()))


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ({"at_least": 2, "below": 4.5}, {"at_least": 2, "below": 4.5}),
        ({"k0": 4}, None),
        ({}, None),
        (4, None),
        (None, None),
    ],
)
def test_bounds_are_a_mapping_of_their_two_words(value, want):
    assert bounds_of(value) == want


def test_the_example_of_the_page_is_an_entry(tmp_path):
    page = (PROJECT / "docs/ledger.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    file = tmp_path / "ledger.yaml"
    file.write_text(example.replace("0f3c…", KEY))

    (one,) = read_ledger(file)

    assert (one.id, one.effect.percent, one.effect.high_percent) == ("ep8", -5.3, -4.4)
    assert [bool(evidence.key) for evidence in one.evidence] == [True, False]


# --- the campaign's key --------------------------------------------------------------------------


def test_the_default_is_our_file_and_one_that_is_not_there_is_none(tmp_path):
    assert ledger_file(campaign().ledger, PROJECT) == OURS
    assert ledger_file(campaign().ledger, tmp_path) is None


def test_another_file_counts_from_the_project_and_has_to_be_there(tmp_path):
    (tmp_path / "mine.yaml").write_text("entries: []")

    assert ledger_file("mine.yaml", tmp_path) == tmp_path / "mine.yaml"
    assert ledger_file(str(tmp_path / "mine.yaml"), PROJECT) == tmp_path / "mine.yaml"
    assert ledger_file(None, PROJECT) is None
    with pytest.raises(SgmatrixError, match=r"ledger = 'other\.yaml': there is no file") as caught:
        ledger_file("other.yaml", tmp_path)
    assert caught.value.code == "config_rejected"


def test_an_empty_name_is_refused():
    with pytest.raises(ValueError, match="ledger"):
        Campaign.model_validate(campaign_data(ledger=""))


@pytest.mark.parametrize("named", [None, "mine.yaml", DEFAULT_LEDGER])
def test_the_campaign_of_a_single_cell_has_the_same_ledger(tmp_path, named):
    plan = make_plan(campaign(ledger=named), Layout(tmp_path / "results/made-up"), PROJECT)

    assert Campaign.model_validate(plan.reproduce["tp1"]).ledger == named


def test_the_digest_is_of_what_a_file_holds(tmp_path):
    one, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    one.write_text("entries: []")
    other.write_text("entries: []")

    assert ledger_digest(one) == ledger_digest(other)
    other.write_text("entries: [] ")
    assert ledger_digest(one) != ledger_digest(other)
