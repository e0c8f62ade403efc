"""The schemas say exactly what the design asks for, with units and meanings."""

import json

import pyarrow as pa
import pytest

from sgmatrix.core.schemas import REQUESTS, points_schema, with_metadata
from sgmatrix.core.schemas_references import REFERENCES

# DESIGN.md, section 8; {…} written out.
DESIGN = """campaign study cell cell_key launch attempt current concurrency request_rate
input_len output_len asked completed failed status reason validity started_at duration_s
output_tok_s total_tok_s request_s cached_share running_mean power_w_mean energy_j_per_output_tok
ceiling_hard_tok_s ceiling_practical_tok_s engine engine_version seed harness"""
LATENCIES = {
    f"{latency}_ms_{stat}"
    for latency in ("ttft", "tpot", "itl", "e2e")
    for stat in ("mean", "p50", "p90", "p99")
}

SHARED = """output_tok_s total_tok_s request_s duration_s asked completed failed concurrency
request_rate input_len output_len validity status cached_share engine_version dataset"""


def test_points_have_every_column_of_the_design():
    assert {*DESIGN.split(), *LATENCIES} <= set(points_schema([]).names)


def test_there_is_one_text_column_per_axis_in_a_fixed_order():
    schema = points_schema(["parallelism", "decode_steps"])

    assert schema.names[-2:] == ["axis_decode_steps", "axis_parallelism"]
    assert schema.field("axis_parallelism").type == pa.string()
    assert schema == points_schema({"decode_steps", "parallelism"})


@pytest.mark.parametrize(
    "schema",
    [points_schema(["oea"]), REQUESTS, REFERENCES],
    ids=["points", "requests", "references"],
)
def test_every_column_has_a_meaning_and_no_name_stands_twice(schema):
    assert all(field.metadata[b"meaning"] for field in schema)
    assert len(set(schema.names)) == len(schema.names)


@pytest.mark.parametrize(
    "schema", [points_schema([]), REQUESTS, REFERENCES], ids=["points", "requests", "references"]
)
def test_measured_columns_may_be_null_and_floats_are_64_bits(schema):
    measured = [
        f for f in schema if f.name.endswith(("_ms", "_tok_s", "_j", "_w", "_mean", "_p99"))
    ]

    assert measured
    assert all(field.nullable for field in measured)
    assert {str(f.type) for f in measured if not pa.types.is_list(f.type)} == {"double"}


def test_identity_may_not_be_null_but_for_the_attempt_of_a_point_not_yet_run():
    required = {field.name for field in points_schema([]) if not field.nullable}

    assert {"campaign", "cell", "cell_key", "launch", "load_id", "status"} <= required
    assert "attempt" not in required


def test_a_reference_has_every_metric_of_a_point_in_the_same_type():
    points = points_schema([])
    shared = set(points.names) & set(REFERENCES.names)

    assert shared >= {*LATENCIES, *SHARED.split()}
    assert {name: REFERENCES.field(name).type for name in shared} == {
        name: points.field(name).type for name in shared
    }


def test_metadata_names_dataset_version_and_provenance():
    schema = with_metadata(REQUESTS, "requests", 7, {"b": 1, "a": "x"})

    assert schema.metadata[b"sgmatrix.schema"] == b"requests/7"
    assert schema.metadata[b"sgmatrix.provenance"] == b'{"a": "x", "b": 1}'
    assert json.loads(schema.metadata[b"sgmatrix.provenance"]) == {"a": "x", "b": 1}
    assert schema.equals(REQUESTS, check_metadata=False)
