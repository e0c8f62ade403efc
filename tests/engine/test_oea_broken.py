"""A plug-in that is broken in the real engine never gives a point with OEA on."""

import shutil
from pathlib import Path

import pytest

from lab import PROJECT, Lab

pytestmark = pytest.mark.engine


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


CAMPAIGN = """
campaign: small
study: tests
engine: unimportable
engines:
{engines}
model: {{recipe: tiny-qwen3-moe}}
axes: {{engine: [{names}], oea: [{{k0: 2}}]}}
probe: {{experts: off}}
telemetry: {{hz: 0}}
warmup: {{max_waves: 1}}
load: {{concurrency: [2], input_len: 8, output_len: 8, requests: {{min: 2, per_concurrency: 1}}}}
deadlines: {{start_s: 120, stall_s: 60, point_s: 60, warmup_s: 60, stop_s: 20, idle_s: 60}}
"""

ENGINE = """
  {name}:
    python: {python}
    device: cpu
    env:
      PYTHONPATH: "{{project}}/envs/sglang-cpu/shim:{folder}"
      SGLANG_USE_CPU_ENGINE: "1"
      OMP_NUM_THREADS: "1"
      HF_HUB_OFFLINE: "1"
      TRANSFORMERS_OFFLINE: "1"
    flags:
      device: cpu
      load_format: dummy
      attention_backend: torch_native
      max_running_requests: 4
      max_total_tokens: 2048
"""

# name: file of the plug-in, text in it, and what stands there instead
BREAKS = {
    "unimportable": ("plugin.py", "import multiprocessing\n", "import no_such_module\n"),
    "never-fires": ("rank.py", "self.detector.mode() == DECODE", "self.detector.mode() == 'never'"),
    "other-version": ("support.py", '"0.5.23": "context"', '"0.5.22": "context"'),
}


def broken(folder: Path, name: str) -> Path:
    """Return a folder with the plug-in's package, broken in one place."""
    file, text, instead = BREAKS[name]
    copy = folder / name / "sglang_oea"
    shutil.copytree(PROJECT / "plugins/sglang-oea/sglang_oea", copy)
    source = (copy / file).read_text()
    assert source.count(text) == 1
    (copy / file).write_text(source.replace(text, instead))
    return copy.parent


def campaign(lab: Lab, *names: str) -> None:
    engines = "".join(
        ENGINE.format(
            name=name,
            python=PROJECT / ".engines/sglang-cpu/bin/python",
            folder=broken(lab.folder, name),
        )
        for name in names
    )
    text = CAMPAIGN.format(engines=engines, names=", ".join(names))
    text = text.replace("engine: unimportable", f"engine: {names[0]}")
    (lab.folder / "campaign.yaml").write_text(text)


def test_no_point_is_measured_with_a_plug_in_that_does_not_run(lab: Lab) -> None:
    campaign(lab, "unimportable", "never-fires")
    done = lab.snakemake()
    assert done.returncode == 0, done.stdout

    rows = {row["engine"]: row for row in lab.points()}
    assert {name: (row["status"], row["reason"]) for name, row in rows.items()} == {
        "unimportable": ("skipped", "plugin_inactive"),
        "never-fires": ("skipped", "plugin_inactive"),
    }
    assert all(row["output_tok_s"] is None for row in rows.values())
    assert lab.processes() == []


def test_an_engine_of_another_version_is_refused_before_any_launch(lab: Lab) -> None:
    campaign(lab, "other-version")
    done = lab.snakemake()

    assert done.returncode != 0
    assert "SGLang 0.5.23 is not supported; supported: " in done.stdout
    assert not (lab.root / "history").exists()
