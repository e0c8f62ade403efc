"""A view of all cells that opens by its address: charts by concurrency, peaks, the matrix.

It is what the Share button of MLflow's pages stores: an experiment tag with the state of the page.
That form is internal to MLflow; seen to work with 3.17. Where the tag cannot be stored, the
address is that of the plain list of runs, in the same view for training runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgmatrix.present.tracking.failures import is_twice

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

_TAG = "mlflow.sharedViewState."
_TAG_REFUSED = (
    "INVALID_PARAMETER_VALUE",
    "BAD_REQUEST",
    "RESOURCE_LIMIT_EXCEEDED",
    "PERMISSION_DENIED",
)
"""Codes of servers that take no tag of that length or name, or not from this user."""
_SECTIONS = (("s1", "Headline"), ("s2", "By concurrency"), ("s3", "Matrix"))
_CURVES = (
    ("by_concurrency/output_tok_s", "Output tok/s"),
    ("by_concurrency/tpot_ms_p50", "TPOT p50, ms"),
    ("by_concurrency/ttft_ms_p99", "TTFT p99, ms"),
    ("by_concurrency/practical_ratio", "Share of the practical ceiling"),
)
_BARS = (
    ("summary/peak_output_tok_s", "Peak output tok/s"),
    ("summary/single_stream_tpot_ms", "Single-stream TPOT, ms"),
)


_MOST_LEVERS = 6


def varying_levers(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the axes of a campaign that have several values, in its order; few enough to read."""
    texts = [cell["axes_text"] for cell in plan["cells"].values()]
    names = dict.fromkeys(name for one in texts for name in one)
    many = [name for name in names if len({one.get(name) for one in texts}) > 1]
    return tuple(many[:_MOST_LEVERS])


def provide_dashboard(client: MlflowClient, experiment: Experiment, levers: Sequence[str]) -> str:
    """Store the view where it is not stored yet; return its address below that of MLflow.

    Args:
        client: of the target.
        experiment: of the study.
        levers: params that stand as columns and axes.
    """
    from mlflow.exceptions import MlflowException

    identity = str(experiment.experiment_id)
    plain = f"#/experiments/{identity}/runs?workflowType=machine_learning&compareRunsMode=CHART"
    text = json.dumps(_state(levers), separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    name = f"{_TAG}{digest}"
    value = "deflate;" + base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    if experiment.tags.get(name) != value:
        try:
            client.set_experiment_tag(identity, name, value)
        except MlflowException as error:
            if is_twice(error) or error.error_code not in _TAG_REFUSED:
                raise
            return plain
    return f"{plain}&viewStateShareKey={digest}"


def _card(kind: str, section: str, **more: Any) -> dict[str, Any]:
    named = json.dumps([kind, section, more], sort_keys=True).encode()
    return {
        "type": kind,
        "uuid": hashlib.sha256(named).hexdigest()[:20],
        "runsCountToCompare": 50,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
        **more,
    }


def _line(metric: str, name: str, **more: Any) -> dict[str, Any]:
    plain = {
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "lineSmoothness": 0,
        "scaleType": "linear",
        "xAxisKey": "step",
        "xAxisScaleType": "log",
        "useGlobalXaxisKey": False,
        "selectedXAxisMetricKey": "",
        "range": {},
        "displayName": name,
    }
    return _card("LINE", "s2", **plain | more)


def _charts(levers: Sequence[str]) -> list[dict[str, Any]]:
    pareto = {
        "xAxisKey": "metric",
        "selectedXAxisMetricKey": "by_concurrency/tok_s_per_user",
        "xAxisScaleType": "linear",
    }
    return [
        *(_card("BAR", "s1", metricKey=key, displayName=name) for key, name in _BARS),
        *(_line(key, name) for key, name in _CURVES),
        _line("by_concurrency/output_tok_s_per_gpu", "tok/s/GPU against tok/s/user", **pareto),
        _card(
            "PARALLEL",
            "s3",
            displayName="Matrix",
            selectedParams=[*levers],
            selectedMetrics=[key for key, _ in _BARS],
            showAllRuns=True,
        ),
    ]


def _state(levers: Sequence[str]) -> dict[str, Any]:
    return {
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "searchFilter": "tags.bench.current = 'true'",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "startTime": "ALL",
        "datasetsFilter": [],
        "isComparingRuns": False,
        "viewMaximized": False,
        "runListHidden": False,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "useGroupedValuesInCharts": True,
        "selectedColumns": [
            *(f"params.`{one}`" for one in levers),
            *(f"metrics.`{key}`" for key, _ in _BARS),
        ],
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsHiddenMode": "SHOWALL",
        "runsVisibilityMap": {},
        "compareRunCharts": _charts(levers),
        "compareRunSections": [
            {
                "uuid": key,
                "name": name,
                "display": True,
                "isReordered": True,
                "deleted": False,
                "isGenerated": False,
            }
            for key, name in _SECTIONS
        ],
        "isAccordionReordered": True,
        "chartsSearchFilter": "",
        "autoRefreshEnabled": False,
        "globalLineChartConfig": {
            "xAxisKey": "step",
            "lineSmoothness": 0,
            "selectedXAxisMetricKey": "",
        },
        "columnWidths": {},
        "useGlobal": False,
    }
