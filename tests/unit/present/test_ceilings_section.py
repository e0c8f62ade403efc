"""The report beside the ceilings: the tile is of the mean, the table of the fastest launch."""

import re
from pathlib import Path

from builders import campaign
from finished import Finished
from sgmatrix.analysis.ceiling.facts import campaign_facts
from sgmatrix.analysis.ceiling.table import write_ceilings
from sgmatrix.core.files import read_json, write_json
from sgmatrix.dataset.ceilings import read_ceilings
from sgmatrix.plan.model import ModelFacts
from sgmatrix.present.ceilings import share_text
from sgmatrix.present.report import render


def test_several_launches_of_a_cell(tmp_path: Path) -> None:
    one = Finished(tmp_path, campaign(axes={"parallelism": ["tp1"]}, launches=2))
    facts = campaign_facts(
        ModelFacts(**one.plan["model"]), device="cpu", hardware=None, gpu_names=[], project=tmp_path
    )
    write_json(one.layout.plan, {**read_json(one.layout.plan), "facts": facts})
    rates = {"memory_copy_bytes_s": 1e7, "memory_cached_bytes_s": 1e8}  # slow, so that shares show
    probe = {
        "measured": rates,
        "skipped": {},
        "duration_s": 1.0,
        "node": {"hostname": "h", "processor": "p", "gpus": []},
        "torch": None,
        "engine": "standin",
        "started_at": "2026-11-20T10:00:00",
    }
    write_json(one.layout.node_probe, probe)
    one.measured("tp1", rates={1: 2.0, 2: 3.0})
    one.measured("tp1", "2", rates={1: 2.0, 2: 5.0})
    write_ceilings(one.layout, one.layout.datasets / "ceilings.parquet")
    html, _ = render(one.layout, one.collect())

    known = read_ceilings(one.layout)
    (load,) = [key[3] for key in known if key[1] == "1" and key[3].startswith("c0002")]
    practical = known["tp1", "1", 1, load]["practical_tok_s"]
    (tile,) = re.findall(r"of the practical ceiling</span><b>([^<]*)</b>", html)
    assert tile == share_text(4.0 / practical)
    assert tile != share_text(5.0 / practical)
    assert f"<td>{share_text(5.0 / practical)}</td>" in html
    assert f"<td>{share_text(3.0 / practical)}</td>" not in html
