"""`snakemake check`: one line per cell that is not well, and an exit code."""

import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from builders import campaign
from finished import Finished
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.present.check import check

SCRIPT = Path(__file__).parents[3] / "workflow" / "scripts" / "check.py"
TWO = {"parallelism": ["tp1", "tp2"]}


def lines_of(history):
    with pytest.raises(SgmatrixError) as caught:
        check(history.layout, history.collect())
    assert caught.value.code == "cells_failed"
    return str(caught.value).splitlines()


@pytest.fixture
def script(monkeypatch):
    """The rule's script, without Snakemake."""
    monkeypatch.setitem(__builtins__, "snakemake", None)
    spec = importlib.util.spec_from_file_location("check_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def job_on(points, tmp_path):
    return SimpleNamespace(log=[str(tmp_path / "check.log")], input=SimpleNamespace(points=points))


def test_all_is_well_in_one_line(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    for cell in ("tp1", "tp2"):
        history.measured(cell, rates={1: 64, 2: 100})

    assert check(history.layout, history.collect()) == "made-up: all 2 cells are ok, 4 points"


def test_a_failed_cell_is_one_line_with_reason_and_root(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})
    history.died("tp2", root="AttributeError: no page table", rates={1: 64})

    assert lines_of(history) == [
        "cells_failed: tp2, launch 1: server_crash: AttributeError: no page table"
    ]


def test_a_cell_that_never_was_ready_has_its_root_although_no_point_has(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.rejected("tp1", root="error: unrecognized arguments: --no-such-flag 1")
    history.measured("tp2", rates={1: 64, 2: 100})

    (line,) = lines_of(history)
    assert line == (
        "cells_failed: tp1, launch 1: config_rejected: "
        "error: unrecognized arguments: --no-such-flag 1"
    )


def test_a_cell_with_a_barred_point_is_named_one_with_a_mere_remark_is_not(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100}, validity={1: "no_telemetry"})
    history.measured("tp2", rates={1: 64, 2: 100}, validity={1: "cold", 2: "partial,cold"})

    (line,) = lines_of(history)
    assert line == (
        "cells_failed: tp2, launch 1: invalid: cold at c0001-i16-o4-random-ids, "
        "partial at c0002-i16-o4-random-ids, cold at c0002-i16-o4-random-ids"
    )


def test_a_cell_that_did_not_run_is_not_well(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})

    assert lines_of(history) == ["cells_failed: tp2: not run: 0 of 2 points were measured"]


def test_a_launch_whose_warm_up_failed_is_named_with_its_first_error(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})
    history.never_warm("tp2", detail="0 of 8 requests succeeded: HTTP 500")

    assert lines_of(history) == [
        "cells_failed: tp2, launch 1: client_crash: 0 of 8 requests succeeded: HTTP 500"
    ]


def test_points_without_a_history_are_judged_by_themselves(told):
    shutil.rmtree(told.layout.root / "history")

    with pytest.raises(SgmatrixError) as caught:
        check(told.layout, told.points)
    assert str(caught.value) == "cells_failed: tp4, launch 1: server_crash: its root line"


def test_a_superseded_failure_is_forgiven(tmp_path):
    history = Finished(tmp_path, campaign())
    history.died("tp1", root="RuntimeError: once", rates={1: 64})
    history.measured("tp1", rates={1: 64, 2: 100})

    assert check(history.layout, history.collect()).startswith("made-up: all 1 cells are ok")


def test_the_script_ends_the_job_as_failed_without_a_traceback(tmp_path, script, capsys):
    history = Finished(tmp_path, campaign())
    history.died("tp1", root="RuntimeError: gone", rates={1: 64})
    job = job_on(history.collect(), tmp_path)

    with pytest.raises(SystemExit) as ended:
        script.main(job)
    shown = capsys.readouterr()
    assert ended.value.code == 1
    assert shown.err == "cells_failed: tp1, launch 1: server_crash: RuntimeError: gone\n"
    assert shown.out == "" and "Traceback" not in Path(job.log[0]).read_text()


def test_the_script_says_on_the_terminal_that_all_is_well(tmp_path, script, capsys):
    history = Finished(tmp_path, campaign())
    history.measured("tp1", rates={1: 64, 2: 100})
    script.main(job_on(history.collect(), tmp_path))

    assert capsys.readouterr().out == "made-up: all 1 cells are ok, 2 points\n"


def test_a_cell_that_was_taken_out_of_the_campaign_is_not_judged(tmp_path):
    history = Finished(tmp_path, campaign(axes=TWO))
    history.measured("tp1", rates={1: 64, 2: 100})
    history.rejected("tp2", root="error: unrecognized arguments")
    assert len(lines_of(history)) == 1

    Finished(tmp_path, campaign(axes={"parallelism": ["tp1"]}))  # writes the smaller plan

    assert check(history.layout, history.collect()) == "made-up: all 1 cells are ok, 2 points"
