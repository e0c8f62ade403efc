"""Kinds of prompts and of arrival that only SGLang's Python client offers, on the real engine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.load.client import ClientRun, run_client
from sgmatrix.load.offer import Offer
from sgmatrix.load.point import flush_cache
from sgmatrix.load.result import request_rows
from sgmatrix.load.serverview import ServerView, server_view
from sgmatrix.node import launch as launch_module
from sgmatrix.node.batchlog import batch_lines, log_size
from sgmatrix.node.launch import run_launch, run_teardown
from sgmatrix.node.server import Server
from sgmatrix.plan.campaign import Campaign
from sgmatrix.plan.plan import make_plan, plan_record
from sgmatrix.plan.recipes import RECIPES

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.engine


class Served:
    """A running server of the default campaign's engine, and the Python client for it."""

    def __init__(self, folder: Path) -> None:
        data = yaml.safe_load((PROJECT / "config/config.yaml").read_text())
        data |= {"campaign": "workloads", "axes": {"mem_fraction": [0.02]}}
        data["load"] |= {"client": "python"}
        campaign = Campaign.model_validate(data)
        self.folder = folder
        self.layout = Layout(folder / "results/workloads")
        self.plan = plan_record(make_plan(campaign, self.layout, PROJECT), campaign, None)
        self.plan = json.loads(json.dumps(self.plan))
        write_json(self.layout.plan, self.plan)
        RECIPES["tiny-qwen3-moe"].write(Path(self.plan["model"]["path"]))
        self.record = run_launch(self.layout, "mf0.02", "1")
        assert self.record["status"] == "ok", self.record
        self.server = Server.from_record(self.record)

    def offer(self, name: str, **load: Any) -> tuple[ClientRun, list[dict[str, Any]], ServerView]:
        """Offer 8 requests of 32 tokens with 8 tokens out, four at a time."""
        assert flush_cache(self.server)
        log = Path(self.record["attempt_dir"]) / "server.log"
        begins = log_size(log)
        given: dict[str, Any] = {"concurrency": 4, **load}
        offer = Offer(input_len=32, output_len=8, requests=8, seed=5, **given)
        folder = self.folder / name
        model = self.plan["model"]["path"]
        run = run_client(offer, self.plan["client"], self.server, model, folder, deadline_s=120)
        assert run.line is not None, run.last_words
        return run, request_rows(run.line, 8, 8), server_view(batch_lines(log, begins), None)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("workloads")
    started = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGMATRIX_LEASES", str(folder / "leases"))
        start = launch_module.start_warden
        patch.setattr(
            launch_module, "start_warden", lambda path: started.append(start(path)) or started[0]
        )
        running = Served(folder)
        yield running
        run_teardown(running.layout, running.record)
    with started[0] as warden:  # closes its pipe
        assert warden.wait(60) == 0


def test_topical_prompts_are_whole_words_of_the_model(served: Served) -> None:
    _, rows, view = served.offer("topical", dataset="topical")

    assert [row["ok"] for row in rows] == [True] * 8
    assert {row["output_tokens"] for row in rows} == {8}
    assert {row["input_tokens"] for row in rows} == {32}
    assert view.cached_share is not None and view.cached_share < 0.05


def test_a_shared_prefix_is_found_in_the_cache(served: Served) -> None:
    prompts = {"groups": 2, "prefix_len": 24}
    _, rows, view = served.offer("prefix", dataset="shared-prefix", prompts=prompts, concurrency=1)

    assert {row["input_tokens"] for row in rows} == {32}
    # one at a time, three of the four prompts of a group find their 24 tokens
    assert view.cached_share == pytest.approx(6 * 24 / (8 * 32), abs=0.02)


def test_requests_arrive_in_bursts_at_the_rate_that_was_asked(served: Served) -> None:
    load = {"concurrency": None, "request_rate": 4.0, "burstiness": 0.5}
    run, rows, _ = served.offer("bursts", dataset="random-ids", **load)

    assert [row["ok"] for row in rows] == [True] * 8
    assert run.line is not None and run.line["request_rate"] == 4.0
