"""A cell with OEA on has points only where every rank has proven that it runs."""

import pytest

from lab import Lab

pytestmark = pytest.mark.workflow

UNPROBED = "probe: {experts: off}\n"
WITH_PLUGIN = "{project}/tests/standin:{project}/tests/standin_oea"


def run(lab: Lab, axes: str, **changes: str) -> dict[str, dict[str, object]]:
    """Run a campaign with the plug-in installed; cell to its first point."""
    path = lab.campaign(axes, waves=0, concurrency="[2]", extra=UNPROBED)
    text = path.read_text().replace("{project}/tests/standin", WITH_PLUGIN)
    for old, new in changes.items():
        text = text.replace(old, new)
    path.write_text(text)
    done = lab.snakemake()
    assert done.returncode == 0, done.stdout
    return {row["cell"]: row for row in lab.points()}


def test_every_way_of_not_running_is_seen_and_gives_no_on_point(lab: Lab) -> None:
    faults = "[odd_log, oea_silent, oea_uncalled, oea_other_k0, oea_wrong_core]"
    axes = f"{{oea: [{{k0: 2}}], parallelism: [tp2], standin_fault: {faults}}}"
    points = run(lab, axes)

    said = {
        cell.removeprefix("tp2-oea2-standin-fault-"): (row["status"], row["reason"])
        for cell, row in points.items()
    }
    assert said == {
        "odd-log": ("ok", None),
        "oea-silent": ("skipped", "plugin_inactive"),
        "oea-uncalled": ("skipped", "plugin_inactive"),
        "oea-other-k0": ("skipped", "plugin_inactive"),
        "oea-wrong-core": ("skipped", "plugin_inactive"),
    }


def test_a_plug_in_that_runs_although_it_is_off_is_another_server(lab: Lab) -> None:
    points = run(lab, "{oea: [off], standin_fault: [odd_log, oea_stray]}")

    assert points["oea-off-standin-fault-odd-log"]["status"] == "ok"
    assert points["oea-off-standin-fault-oea-stray"]["reason"] == "flag_mismatch"


def test_an_engine_that_the_plug_in_does_not_know_is_refused_before_any_launch(lab: Lab) -> None:
    path = lab.campaign("{oea: [off, {k0: 2}]}")
    env = f'{WITH_PLUGIN}", SGLANG_STANDIN_OEA_UNSUPPORTED: "SGLang 0.4 is not supported'
    path.write_text(path.read_text().replace("{project}/tests/standin", env))

    done = lab.snakemake()

    assert done.returncode != 0
    assert "the plug-in sglang-oea of engine standin: SGLang 0.4 is not supported" in done.stdout
    assert not (lab.root / "history").exists()
