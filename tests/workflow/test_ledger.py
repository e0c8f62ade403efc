"""The ledger in a whole campaign on the stand-in: warned of, reported, and added to by a person."""

from __future__ import annotations

import json
import subprocess

import pytest

from lab import Lab
from ledger_entries import entry_data
from sgmatrix.core.yaml_strict import yaml_text
from sgmatrix.plan.ledger import read_ledger

pytestmark = pytest.mark.workflow

FAST, SLOW = "standin-tpot-ms-3", "standin-tpot-ms-24"
EXTRA = """
ledger: {ledger}
compare:
  - name: slow
    baseline: {{standin_tpot_ms: 3}}
    variant: {{standin_tpot_ms: 24}}
    primary: {{concurrency: 2}}
    launches: {{min: 3, max: 3}}
    noise_pair: false
validity: {{max_client_delay_share: 1, max_client_gap: 1, max_client_cpu_share: 1}}
"""
WARNING = (
    f"ledger: slow-ticks, ruled out: cell {SLOW}; half as fast (GLM-5; no engine version told)"
)

Ended = tuple[Lab, subprocess.CompletedProcess[str]]


def write_ledger(lab: Lab, text: str = "") -> None:
    entry = entry_data(
        id="slow-ticks", conditions={"model": "GLM-5"}, applies_to={"standin_tpot_ms": 24}
    )
    file = lab.folder / "findings.yaml"
    file.write_text(yaml_text({"entries": [entry]}).replace("\n", "\n  ").rstrip() + f"\n{text}")


def make(lab: Lab) -> Lab:
    write_ledger(lab)
    extra = EXTRA.format(ledger=lab.folder / "findings.yaml")
    path = lab.campaign("{standin_tpot_ms: [3, 24]}", waves=2, concurrency="[2]", extra=extra)
    path.write_text(path.read_text().replace("max_waves: 2", "max_waves: 2, agreement: 0.99"))
    return lab


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    lab = make(Lab(tmp_path_factory.mktemp("ledger")))
    return lab, lab.snakemake()


def test_before_a_launch_the_plan_warns_and_nothing_is_proposed(lab: Lab) -> None:
    make(lab)

    plan, dry, proposed = (lab.snakemake(what) for what in ("plan", "-n", "ledger"))

    for done in (plan, dry):
        (line,) = [one for one in done.stdout.splitlines() if one.startswith("ledger:")]
        assert line.startswith(f"{WARNING}; to be retested: model tiny-qwen3-moe, not GLM-5, ")
        assert done.returncode == 0
    assert proposed.returncode == 0
    assert "# nothing is decided: no comparison of small gives an entry" in proposed.stdout
    assert not (lab.root / "history").exists() and not (lab.root / "plan.json").exists()


def test_a_campaign_without_a_ledger_is_not_warned(lab: Lab) -> None:
    path = make(lab).folder / "campaign.yaml"
    path.write_text(path.read_text().replace(f"ledger: {lab.folder}/findings.yaml", "ledger: null"))

    assert "ledger:" not in lab.snakemake("plan").stdout


def test_a_ledger_that_is_wrong_is_refused_before_any_launch(lab: Lab) -> None:
    make(lab)
    file = lab.folder / "findings.yaml"
    file.write_text(file.read_text().replace("status: ruled_out", "status: dead"))

    done = lab.snakemake()

    assert done.returncode == 1
    assert f"ledger_rejected: {file}: entries[0].status = 'dead'" in done.stdout
    assert not lab.root.exists()


def test_it_warns_and_measures_all_the_same_and_the_report_says_so(ended: Ended) -> None:
    lab, done = ended

    assert done.returncode == 0, done.stdout
    assert WARNING in done.stdout
    plan = json.loads((lab.root / "plan.json").read_text())
    assert [line.startswith(WARNING) for line in plan["warnings"]] == [True]
    assert [(one["id"], one["cells"]) for one in plan["ledger"]] == [("slow-ticks", [SLOW])]
    assert {row["status"] for row in lab.points() if row["cell"] == SLOW} == {"ok"}
    page = (lab.root / "report/index.html").read_text()
    assert WARNING in page and '<h2 id="ledger">Known findings</h2>' in page


def test_a_decided_comparison_is_proposed_and_starts_nothing(ended: Ended) -> None:
    lab, _ = ended
    before = {file: file.stat().st_mtime_ns for file in lab.root.rglob("*.json")}
    events = len(lab.events())

    done = lab.snakemake("ledger")

    assert done.returncode == 0, done.stdout
    assert {file: file.stat().st_mtime_ns for file in lab.root.rglob("*.json")} == before
    assert len(lab.events()) == events
    start = done.stdout.index("  - id: small-slow")
    write_ledger(lab, done.stdout[start:].partition("\n[")[0].partition("\n\n")[0] + "\n")
    new = read_ledger(lab.folder / "findings.yaml")[1]
    assert (new.status, new.effect.metric) == ("ruled_out", "tpot_ms_mean")
    assert new.applies_to == [{"standin_tpot_ms": 24}]
    assert new.effect.percent is not None and new.effect.percent > 100
    assert [one.cell for one in new.evidence] == [FAST, SLOW]
    assert new.conditions.engine_version == "0.5.23+standin"
    assert new.conditions.hardware  # the processor of this machine


def test_an_entry_that_is_added_makes_the_report_anew_and_nothing_else(ended: Ended) -> None:
    lab, _ = ended
    added = entry_data(id="fast-ticks", status="helped", applies_to={"standin_tpot_ms": 3})
    write_ledger(
        lab, f"  {yaml_text({'entries': [added]}).partition(chr(10))[2]}".replace("\n", "\n  ")
    )

    done = lab.snakemake()

    assert done.returncode == 0, done.stdout
    assert {row["attempt"] for row in lab.points()} == {1}
    assert ">fast-ticks</th>" in (lab.root / "report/index.html").read_text()
    assert "Nothing to be done" in lab.snakemake("-n").stdout


def test_a_cell_that_is_repeated_alone_keeps_what_the_plan_says_of_the_others(ended: Ended) -> None:
    lab, _ = ended

    done = lab.snakemake(config=lab.root / f"cells/{FAST}/cell.yaml")

    assert done.returncode == 0, done.stdout
    plan = json.loads((lab.root / "plan.json").read_text())
    assert [line.startswith(WARNING) for line in plan["warnings"]] == [True]
    assert [one["id"] for one in plan["ledger"]] == ["slow-ticks", "fast-ticks"]
