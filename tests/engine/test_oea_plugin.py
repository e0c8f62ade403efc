"""The plug-in sglang-oea: its own tests by the engine's interpreter, and real CPU servers."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from lab import wait_for
from oea_engine import ENGINE, SOURCE, engine_env, install_plugin, link_runner
from sgmatrix.node.preflight import free_port
from sgmatrix.plan.recipes import RECIPES

pytestmark = pytest.mark.engine

LAYERS = 2
NEW_TOKENS = 5


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_plugin(tmp_path_factory.mktemp("plugin"))


def test_the_plugins_own_tests_pass_in_the_engine(site: Path, tmp_path: Path) -> None:
    runner = link_runner(tmp_path / "runner")
    empty = tmp_path / "empty"
    empty.mkdir()
    run = subprocess.run(
        [
            *(ENGINE, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-c", os.devnull),
            *("--rootdir", SOURCE, "--basetemp", tmp_path / "pytest", SOURCE / "tests"),
        ],
        env=engine_env(site, runner),
        cwd=empty,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )

    assert run.returncode == 0, run.stdout
    # Triton is not in the CPU engine; the real SGLang is, and must not have been skipped.
    skipped = [line for line in run.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [line.rpartition(": ")[2] for line in skipped] == ["triton is not installed"]


class Server:
    """A real CPU server with OEA on, in a process group of its own."""

    def __init__(self, site: Path, folder: Path, **settings: str) -> None:
        model, empty = folder / "model", folder / "cwd"
        RECIPES["tiny-qwen3-moe"].write(model)
        empty.mkdir()
        self.status = folder / "status"
        self.log = folder / "server.log"
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        env = engine_env(site, OEA_ENABLE="1", OEA_STATUS_DIR=str(self.status), **settings)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(ENGINE, "-m", "sglang.launch_server", "--device", "cpu"),
                    *("--model-path", model, "--load-format", "dummy", "--random-seed", "1"),
                    *("--attention-backend", "torch_native", "--max-total-tokens", "4096"),
                    *("--max-running-requests", "8", "--port", str(port), "--skip-server-warmup"),
                ],
                env=env,
                cwd=empty,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ended(self) -> bool:
        return self.process.poll() is not None

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=30) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False

    def generate(self) -> None:
        body = {
            "input_ids": [5, 6, 7, 8],
            "sampling_params": {"max_new_tokens": NEW_TOKENS, "ignore_eos": True},
        }
        asked = urllib.request.Request(
            f"{self.url}/generate",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.load(answer)["meta_info"]["completion_tokens"] == NEW_TOKENS

    def proof(self, nonce: str) -> dict[str, Any]:
        (self.status / "ask").write_text(nonce)
        found: list[dict[str, Any]] = []

        def answered() -> bool:
            found[:] = [json.loads(file.read_text()) for file in self.status.glob("rank-*.json")]
            return [one["answers"] for one in found] == [nonce]

        wait_for(answered, f"the only rank answers {nonce}")
        return found[0]


@contextmanager
def serving(site: Path, folder: Path, **settings: str) -> Iterator[Server]:
    server = Server(site, folder, **settings)
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()


def test_the_proof_of_a_real_server_counts_its_decode_steps(site: Path, tmp_path: Path) -> None:
    with serving(site, tmp_path, OEA_K0="2") as server:
        wait_for(lambda: server.healthy() or server.ended(), "the server is up", 240)
        assert not server.ended(), server.log.read_text()

        before = server.proof("before")
        server.generate()
        after = server.proof("after")

    ranks = ("role", "tp_rank", "pp_rank", "ep_rank", "detector")
    assert [before[name] for name in ranks] == ["scheduler", 0, 0, 0, "context"]
    assert (before["k0"], before["plugin_version"]) == (2, after["plugin_version"])
    # The first of the tokens comes from the prefill; a step ahead may be under way at the end.
    steps, rest = divmod(after["calls"] - before["calls"], LAYERS)
    assert rest == 0
    assert steps in (NEW_TOKENS - 1, NEW_TOKENS)
    assert after["tokens"] - before["tokens"] == steps * LAYERS  # one request, one row
    assert after["layers"] == list(range(LAYERS))
    assert (after["core"], after["fill"], after["router"]) == ("eager", "distinct", ["softmax"])
    assert after["check"]["ok"] is True
    assert after["check"]["shapes"] == [1, 2, 3, 4, 7, 8]


def test_a_setting_that_the_model_cannot_have_ends_the_server(site: Path, tmp_path: Path) -> None:
    with serving(site, tmp_path, OEA_K0="5") as server:
        wait_for(lambda: server.healthy() or server.ended(), "the server is up", 240)
        if not server.ended():
            with pytest.raises((URLError, OSError)):
                server.generate()
        wait_for(server.ended, "the server has ended")
        log = server.log.read_text()

    line = "sglang-oea: refused: OEA_K0=5 of a model with 4 experts per token; fix: set it to 4"
    assert line in log
