"""`snakemake compare` on two finished campaigns, with no campaign of its own."""

import pyarrow.parquet as pq
import pytest

from builders import campaign
from finished import Finished

pytestmark = pytest.mark.workflow

NOT_THERE = (
    "config_rejected: no results of a campaign night-3: results/night-3 is not there; "
    "fix: one of night-2, night-1"
)
ALONE = (
    "config_rejected: base and other are for the target compare, which goes alone; "
    "fix: snakemake compare --config base=<campaign> other=<campaign>"
)


@pytest.fixture
def two(lab):
    """A folder with two campaigns of three launches, and a campaign file that is refused."""
    for name, rates in (("night-1", (100.0, 101.0, 102.0)), ("night-2", (110.0, 111.0, 112.0))):
        history = Finished(lab.folder, campaign(campaign=name, launches=3))
        for launch, rate in enumerate(rates, start=1):
            history.measured("tp1", str(launch), rates={1: 64.0, 2: rate})
        history.collect()
    (lab.folder / "campaign.yaml").write_text("no_such_key: 1\n")
    return lab


def test_two_campaigns_are_compared_whatever_campaign_file_there_is(two):
    before = sorted(two.folder.glob("results/night-?/**/*"))

    done = two.snakemake("compare", "--config", "base=night-1", "other=night-2")

    assert done.returncode == 0, done.stdout
    assert "+9.9 %  +6.9 to +13.0 %" in done.stdout
    folder = two.folder / "results/compare/night-1--night-2"
    assert f"comparison  {folder.relative_to(two.folder) / 'index.html'}" in done.stdout
    rows = pq.read_table(folder / "comparison.parquet").to_pylist()
    assert {row["verdict"] for row in rows} == {"better", "no_difference"}
    assert (folder / "comparison.csv").is_file()
    # nothing of the campaigns is touched, and no lock is taken
    assert sorted(two.folder.glob("results/night-?/**/*")) == before


def test_a_second_time_it_is_compared_again(two):
    arguments = ("compare", "--config", "base=night-1", "other=night-2", "bound_percent=20")
    two.snakemake(*arguments)
    done = two.snakemake(*arguments)

    assert done.returncode == 0, done.stdout
    assert "no difference larger than 20 %" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (("compare", "--config", "base=night-1", "other=night-3"), NOT_THERE),
        (("check", "--config", "base=night-1", "other=night-2"), ALONE),
        (("--config", "base=night-1", "other=night-2"), ALONE),
        (("-n", "--config", "base=night-1", "other=night-2"), ALONE),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(two, arguments, want):
    done = two.snakemake(*arguments)

    assert done.returncode == 1
    assert want in done.stdout.splitlines()
    assert "Traceback" not in done.stdout


def test_without_names_it_says_which_there_are(two):
    two.campaign("{standin_tpot_ms: [3]}")

    done = two.snakemake("compare")

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].endswith(
        "fix: --config base=<campaign> other=<campaign>; there are night-1, night-2"
    )
    assert not (two.root / "plan.json").exists()
