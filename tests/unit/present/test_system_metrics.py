"""Telemetry as MLflow's system metrics, from a made-up table."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from sgmatrix.core.parquet import table_from_rows
from sgmatrix.core.schemas import TELEMETRY
from sgmatrix.present.tracking.system_metrics import system_metrics

BEGAN_S = 1_790_000_000


def table(*values: tuple[float, str, int | None, str, float]) -> pa.Table:
    """(seconds since the start, source, device, name, value) as telemetry."""
    rows = [
        {
            "campaign": "c",
            "cell": "tp1",
            "launch": "1",
            "attempt": 1,
            "phase": "point",
            "time": datetime.fromtimestamp(BEGAN_S + at, UTC),
            "t_s": at,
            "source": source,
            "device": device,
            "name": name,
            "value": value,
        }
        for at, source, device, name, value in values
    ]
    return table_from_rows(rows, TELEMETRY)


def test_five_seconds_are_one_value_at_their_begin():
    seen = system_metrics(
        table(
            (-0.5, "gpu", 3, "power_w", 80.0),
            (0.5, "gpu", 3, "power_w", 100.0),
            (4.5, "gpu", 3, "power_w", 300.0),
            (5.0, "gpu", 3, "power_w", 700.0),
        )
    )

    assert [(one.key, one.value, one.step) for one in seen] == [
        ("system/gpu_3_power_usage_watts", 80.0, -5),
        ("system/gpu_3_power_usage_watts", 200.0, 0),
        ("system/gpu_3_power_usage_watts", 700.0, 5),
    ]
    assert [one.time_ms - 1000 * BEGAN_S for one in seen] == [-5000, 0, 5000]


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        (("gpu", 0, "utilization_share", 0.5), "gpu_0_utilization_percentage", 50.0),
        (("gpu", 0, "memory_used_mib", 1000.0), "gpu_0_memory_usage_megabytes", 1048.576),
        (("host", None, "cpu_busy_share", 0.25), "cpu_utilization_percentage", 25.0),
        (("server", 1, "running", 7.0), "server_running_requests", 7.0),
    ],
)
def test_names_and_units_are_mlflow_s(given, key, value):
    (one,) = system_metrics(table((1.0, *given)))

    assert (one.key, one.value) == (f"system/{key}", value)


def test_what_mlflow_has_no_name_for_stays_in_the_table():
    assert system_metrics(table((1.0, "host", None, "cpu_steal_share", 0.1))) == []
