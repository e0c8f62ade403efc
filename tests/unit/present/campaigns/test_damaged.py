"""Two campaigns of which one was copied badly, or is of another version: refused by name."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders import campaign
from finished import Finished
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.files import write_json
from sgmatrix.present.campaigns.compared import compare


@pytest.fixture
def two(tmp_path):
    made = []
    for name in ("a", "b"):
        history = Finished(tmp_path, campaign(campaign=name))
        history.measured("tp1", rates={1: 64, 2: 120})
        history.collect()
        made.append(history)
    return made


def refused(two):
    with pytest.raises(SgmatrixError) as caught:
        compare([one.layout for one in two], ["a", "b"], 1.0)
    assert caught.value.fix
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (
            lambda table: table.replace_schema_metadata({b"sgmatrix.schema": b"points/99"}),
            "holds points/99, newer than",
        ),
        (
            lambda table: table.replace_schema_metadata({b"sgmatrix.schema": b"cells/1"}),
            "holds cells/1, not points",
        ),
        # without it a barred point would count
        (lambda table: table.drop(["validity"]), "lacks the column validity"),
        (
            lambda table: table.set_column(
                table.schema.get_field_index("output_tok_s"),
                "output_tok_s",
                pa.array(["64"] * table.num_rows),
            ),
            "has output_tok_s as string",
        ),
        # each launch would count as two
        (
            lambda table: pa.concat_tables([table, table]),
            "tp1, launch 1, c0001-i16-o4-random-ids is there twice",
        ),
    ],
)
def test_a_table_that_is_not_one_of_today_is_not_half_read(two, change, want):
    table = pq.read_table(two[1].points)
    pq.write_table(change(table), two[1].points)

    assert want in refused(two)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (lambda plan: plan.update(cells=["tp1"]), "cells is no mapping"),
        (lambda plan: plan["cells"].clear(), "launches has the cell tp1, cells has not"),
        (lambda plan: plan["cells"]["tp1"].update(axes_text=None), "cells.tp1.axes_text is no"),
        (lambda plan: plan.update(model="x"), "model is no mapping"),
        (
            lambda plan: plan["launches"][0]["points"][0].update(prompts="x"),
            "prompts of c0001-i16-o4-random-ids is no mapping",
        ),
    ],
)
def test_a_plan_of_another_form_is_refused(two, change, want):
    change(two[1].plan)
    write_json(two[1].layout.plan, two[1].plan)

    assert f"{two[1].layout.root}: plan.json" in refused(two) and want in refused(two)
