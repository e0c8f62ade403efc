"""Files to one table: whole or not at all, the same bytes each time, never over another file."""

import csv
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foreign_results import fork_line, genai_run, sglang_line, vllm_result
from import_results import main
from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.schemas_references import REFERENCES
from sgmatrix.load.foreign.importer import import_results, write_references


@pytest.fixture
def files(tmp_path):
    """Four files of four tools: 2, 1, 1 and 1 results."""
    lines = {
        "a.jsonl": [sglang_line(), sglang_line("median", max_concurrency=None)],
        "b.jsonl": [fork_line()],
        "c.json": [vllm_result()],
        "d.json": [genai_run()],
    }
    for name, results in lines.items():
        (tmp_path / name).write_text("\n".join(json.dumps(one) for one in results) + "\n")
    return [tmp_path / name for name in lines]


@pytest.fixture
def broken(tmp_path):
    """A file with a good line, one without a duration, and one that is cut off after."""
    lost = sglang_line()
    del lost["duration"]
    (tmp_path / "lost.jsonl").write_text(f"{json.dumps(sglang_line())}\n{json.dumps(lost)}\n")
    (tmp_path / "cut.jsonl").write_text(json.dumps(sglang_line())[:200])
    return [tmp_path / "lost.jsonl", tmp_path / "cut.jsonl"]


def test_rows_are_in_the_order_of_files_and_lines(files):
    table = import_results(files)

    assert table.column("tool").to_pylist() == [
        "sglang",
        "sglang",
        "sglang fork",
        "vllm",
        "genai-bench",
    ]
    assert table.column("source_line").to_pylist() == [1, 2, 1, 1, 1]
    assert table.column("source_file").to_pylist() == [str(files[i]) for i in (0, 0, 1, 2, 3)]
    assert set(table.column("validity").to_pylist()) == {"valid"}


def test_a_column_without_any_value_has_its_type(files):
    table = import_results(files[:1])

    assert table.schema.equals(REFERENCES, check_metadata=False)
    assert table.column("cached_share").type == pa.float64()
    assert table.column("concurrency").to_pylist() == [4, None]


def test_all_problems_are_named_and_nothing_is_returned(files, broken, tmp_path):
    with pytest.raises(Refusal) as caught:
        import_results([files[0], *broken, tmp_path / "gone.json"])

    assert caught.value.code == "result_unreadable"
    places = [problem.split(": ")[0] for problem in caught.value.problems]
    assert sorted(places) == sorted(
        [f"{broken[0]}:2", f"{broken[1]}:1", str(tmp_path / "gone.json")]
    )


def test_the_same_files_give_the_same_bytes_and_say_what_they_were(files, tmp_path):
    for name in ("one.parquet", "two.parquet"):
        write_references(import_results(files), tmp_path / name)

    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    metadata = pq.read_schema(tmp_path / "one.parquet").metadata
    assert metadata[b"sgmatrix.schema"] == b"references/1"
    digests = json.loads(metadata[b"sgmatrix.provenance"])["files"]
    assert digests.keys() == {str(file) for file in files}
    assert {len(one) for one in digests.values()} == {64}


def test_a_csv_has_the_same_values_and_leaves_missing_ones_blank(files, tmp_path):
    table = import_results(files)
    write_references(table, tmp_path / "out.csv")

    with (tmp_path / "out.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0]) == REFERENCES.names
    assert [one["concurrency"] for one in rows] == ["4", "", "", "4", "4"]
    assert [float(one["output_tok_s"]) for one in rows] == [100.0] * 5
    assert [one["raw"] for one in rows] == table.column("raw").to_pylist()


def test_a_disk_that_cannot_be_written_is_named(files, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(SgmatrixError, match=r"file/out\.parquet: .*; fix: choose") as caught:
        write_references(import_results(files), tmp_path / "file" / "out.parquet")

    assert caught.value.code == "results_unwritable"


def test_a_name_that_is_no_utf_8_can_be_imported(tmp_path):
    odd = tmp_path / os.fsdecode(b"odd-\xff.jsonl")
    odd.write_text(json.dumps(sglang_line()))

    table = import_results([odd])

    assert table.column("source_file").to_pylist() == [f"{tmp_path}/odd-\ufffd.jsonl"]


# --- the command --------------------------------------------------------------------------------


def run(capsys, *words):
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_writes_a_table_and_says_what_is_in_it(capsys, files, tmp_path):
    out = tmp_path / "new" / "out.parquet"

    assert run(capsys, *files, "--to", out) == (0, f"{out}: 5 results, 0 failed, 0 flagged\n", "")
    assert pq.read_table(out).num_rows == 5
    assert [one.name for one in out.parent.iterdir()] == ["out.parquet"]


def test_requests_asked_can_be_given(capsys, files, tmp_path):
    out = tmp_path / "out.parquet"

    code, said, _ = run(capsys, files[0], "--to", out, "--asked", "10")

    assert (code, said) == (0, f"{out}: 2 results, 0 failed, 2 flagged\n")
    assert pq.read_table(out).column("failed").to_pylist() == [2, 2]


def test_a_refusal_names_every_problem_and_writes_nothing(capsys, files, broken, tmp_path):
    out = tmp_path / "out.parquet"

    code, said, problems = run(capsys, *files, *broken, "--to", out)

    assert (code, said) == (1, "")
    lines = problems.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("result_unreadable: ") and "; fix: " in line for line in lines)
    assert not out.exists()
    assert not list(tmp_path.glob(".out*"))


def test_a_file_that_is_there_stays_without_force(capsys, files, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")

    code, _, problem = run(capsys, *files, "--to", out)
    assert (code, out.read_text()) == (1, "mine")
    assert problem == (
        f"results_unwritable: {out}: is already there; fix: choose another name, or --force\n"
    )

    assert run(capsys, *files, "--to", out, "--force")[0] == 0
    assert out.read_text().startswith('"source_file"')


def test_a_refused_import_does_not_touch_the_file_that_force_would_replace(
    capsys, broken, tmp_path
):
    out = tmp_path / "out.csv"
    out.write_text("mine")

    assert run(capsys, *broken, "--to", out, "--force")[0] == 1
    assert out.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("out.json", "ends in .json; fix: name it .parquet or .csv"),
        ("out", "ends in nothing"),
        ("folder.csv", "is a folder"),
        ("a.csv", "is one of the files to import"),
    ],
)
def test_a_name_that_no_table_can_have_is_refused(capsys, files, tmp_path, name, problem):
    (tmp_path / "folder.csv").mkdir()
    source = files[0].rename(tmp_path / "a.csv")

    code, _, said = run(capsys, source, "--to", tmp_path / name, "--force")

    assert code == 1
    assert problem in said
    assert json.loads(source.read_text().splitlines()[0])["completed"] == 8


@pytest.mark.parametrize(
    "words", [[], ["x.json"], ["--to", "out.csv"], ["x", "--to", "o.csv", "--asked", "0"]]
)
def test_words_that_are_missing_are_usage(capsys, words):
    with pytest.raises(SystemExit) as caught:
        main(words)

    assert caught.value.code == 2
