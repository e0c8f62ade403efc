"""Probes on the stand-in, whose experts and probabilities are known by construction."""

from __future__ import annotations

import statistics
import subprocess

import pyarrow.parquet as pq
import pytest

from lab import Lab
from sgmatrix.core.files import read_json

pytestmark = pytest.mark.workflow

WITH_PLUGIN = "{project}/tests/standin:{project}/tests/standin_oea"
COMPARE = """
probe: {batches: [1, 4], steps: 24, prompts: 3, tokens: 6}
compare:
  - name: oea
    baseline: {oea: off}
    variant: {oea: {k0: 2}}
    primary: {concurrency: 1}
    launches: {min: 3, max: 3}
    noise_pair: false
"""

Ended = tuple[Lab, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A cell with OEA and the one beside it, both probed before their launches."""
    lab = Lab(tmp_path_factory.mktemp("probe"))
    path = lab.campaign("{oea: [off, {k0: 2}]}", waves=0, concurrency="[1]", extra=COMPARE)
    path.write_text(path.read_text().replace("{project}/tests/standin", WITH_PLUGIN))
    return lab, lab.snakemake()


def probes(lab: Lab) -> tuple[dict, dict]:
    off, on = (
        read_json(lab.root / f"cells/{cell}/probe/probe.json") for cell in ("oea-off", "oea2")
    )
    return off, on


def test_both_cells_are_probed_once_and_before_any_timed_launch(ended: Ended) -> None:
    lab, done = ended
    assert done.returncode == 0, done.stdout

    off, on = probes(lab)

    assert [(one["status"], one["detail"]) for one in (off, on)] == [("ok", None)] * 2
    assert [one["reference"] for one in (off, on)] == ["oea-off", "oea-off"]
    first = min(row["started_at"].timestamp() for row in lab.points())
    for cell in ("oea-off", "oea2"):
        folder = lab.root / f"history/{cell}/probe"
        assert [attempt.name for attempt in folder.iterdir()] == ["1"]
        final = read_json(folder / "1/teardown.json")
        assert final["closed"]["times"]["closed"] < first
        assert not list(folder.rglob("*.pt"))  # what they said is in the rows


def test_the_experts_of_each_full_step_are_those_that_the_stand_in_opened(ended: Ended) -> None:
    lab, _ = ended
    rows = pq.read_table(lab.root / "datasets/experts.parquet").to_pylist()

    def mean(cell: str, batch: int) -> float:
        mine = [row for row in rows if (row["cell"], row["batch"]) == (cell, batch)]
        assert {row["layer"] for row in mine} == {0, 1}
        assert len({row["step"] for row in mine}) >= 12
        assert {(row["tokens"], row["experts"], row["top_k"]) for row in mine} == {(batch, 16, 4)}
        return statistics.fmean(row["activated"] for row in mine)

    # one token opens its 4, of its own choice or filled up
    assert [mean("oea-off", 1), mean("oea2", 1)] == [4.0, 4.0]
    # four tokens of 4 in 16: 16 (1 - 0.75^4) = 10.9; of 2: 16 (1 - 0.875^4) = 6.6
    assert mean("oea-off", 4) == pytest.approx(10.9, abs=0.8)
    assert mean("oea2", 4) == pytest.approx(6.6, abs=0.8)


def test_the_texts_of_the_reference_are_forced_upon_both_and_judged(ended: Ended) -> None:
    off, on = probes(ended[0])

    assert [text["answer"] for text in off["texts"]] == [[7] * 6] * 3
    assert on["texts"] is None
    # of the token 7: -1.5 - 0.1 x 1; with 2 experts fewer of its own 0.1 less
    for probe, want in ((off, -1.6), (on, -1.7)):
        quality = probe["quality"]
        assert quality["tokens"] == 15  # the first of each six comes from the prefill
        assert quality["logprob_mean"] == pytest.approx(want, abs=1e-6)
        assert quality["logprob_by_text"] == pytest.approx([want] * 3, abs=1e-6)
    assert off["quality"]["calls"] == [[], []]
    (before,), (after,) = on["quality"]["calls"]
    assert after > before


def test_the_report_has_experts_quality_and_proof(ended: Ended) -> None:
    page = (ended[0].root / "report/index.html").read_text()

    assert "1 rank proved that OEA runs (eager core, k0 = 2), compared with the reference" in page
    assert "mean log-probability per token -1.6000 off, -1.7000 on, difference -0.1000" in page
    assert "Memory bandwidth measured there:" in page
    assert "over 15 tokens of 3 texts forced through decode steps" in page


def test_nothing_is_probed_again_until_something_else_is_asked(ended: Ended) -> None:
    lab, _ = ended
    assert "Nothing to be done" in lab.snakemake("-n").stdout

    path = lab.folder / "more.yaml"
    path.write_text((lab.folder / "campaign.yaml").read_text().replace("tokens: 6", "tokens: 7"))
    asked = lab.snakemake("-n", config=path).stdout

    assert "probe" in asked and "Nothing to be done" not in asked
    assert "rule launch" not in asked and "Launch oea2" not in asked
