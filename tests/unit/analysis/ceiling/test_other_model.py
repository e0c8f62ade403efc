"""The ceilings beside NVIDIA's aiconfigurator in its speed-of-light mode, where it is installed.

`pip install aiconfigurator-core==0.12.0` (114 MB); it is no dependency. It adds up the larger of
memory and compute of each operation, so it is compared with the parts of the hard tier added up.
"""

from __future__ import annotations

import pytest

from ceiling_facts import H200, QWEN3, device
from sgmatrix.analysis.ceiling.decode import decode_pass
from sgmatrix.analysis.ceiling.parallel import Parallel
from sgmatrix.core.facts.hardware import Device

pytestmark = pytest.mark.filterwarnings("ignore")


def speed_of_light_ms(system: str, tp: int, batch: int, context: int) -> float:
    config = pytest.importorskip("aiconfigurator_core.sdk.config")
    backends = pytest.importorskip("aiconfigurator_core.sdk.backends.factory")
    models = pytest.importorskip("aiconfigurator_core.sdk.models")
    databases = pytest.importorskip("aiconfigurator_core.sdk.perf_database")
    database = databases.get_database_view(
        system,
        "sglang",
        "0.5.9",
        allow_missing_data=True,
        database_mode="SOL",
        allow_unlisted_version=True,
    )
    layout = config.ModelConfig(tp_size=tp, moe_tp_size=tp, moe_ep_size=1)
    model = models.get_model("Qwen/Qwen3-30B-A3B", layout, "sglang")
    load = config.RuntimeConfig(batch_size=batch, isl=context - 1, osl=2)
    backend = backends.get_backend("sglang")
    return float(backend.run_static_latency_only(model, database, load, "static_gen"))


@pytest.mark.parametrize(
    ("system", "on", "batch", "tolerance"),
    [
        ("h200_sxm", H200, 1, 0.01),
        ("b200_sxm", device("b200-sxm"), 1, 0.01),
        # it takes min(experts, batch x top k) distinct experts, which few tokens do not open
        ("h200_sxm", H200, 1024, 0.25),
    ],
)
def test_a_decode_step(system: str, on: Device, batch: int, tolerance: float) -> None:
    theirs = speed_of_light_ms(system, 1, batch, 320)
    ours = decode_pass(QWEN3, on, Parallel(), "hard", batch=batch, context=320)
    added_up = 1e3 * sum(part.longer_s for part in ours.parts.values())
    assert added_up == pytest.approx(theirs, rel=tolerance)
