"""What a reader is told of a profile: tables, and what is missing from them."""

from sgmatrix.core.files import write_json
from sgmatrix.core.layout import Layout
from sgmatrix.present.profile_view import profile_text, profile_views, profiles_made
from sgmatrix.present.report import render

LONG = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::M>>>"
ROW = {"component": "attention", "ms": 6.0, "share": 0.6, "count": 20}
TABLE = {
    "rank": "TP-0",
    "problem": None,
    "device": "gpu",
    "steps": {"DECODE bs=8": 10},
    "window_ms": 10.0,
    "busy_ms": 8.0,
    "busy_share": 0.8,
    "gap_ms": 2.0,
    "gaps": 4,
    "gap_longest_ms": 1.25,
    "sum_ms": 10.0,
    "rows": [
        {**ROW, "top": [{"name": LONG, "ms": 6.0, "count": 20}]},
        {**ROW, "component": "other", "ms": 4.0, "share": 0.4, "top": [{"name": "<b>x</b>"}]},
    ],
}
RECORD = {
    "cell": "tp1",
    "attempt": 3,
    "status": "ok",
    "reason": None,
    "detail": None,
    "concurrency": 8,
    "input_len": 64,
    "output_len": 40,
    "steps": 10,
    "ranks": 1,
    "traces": [{"name": "profile-TP-0.trace.json.gz", "bytes": 1_500_000}],
    "traces_in": "results/small/history/tp1/profile/3/traces",
    "tables": [TABLE],
}


def shown(tmp_path, **changes):
    layout = Layout(tmp_path)
    write_json(layout.launch("tp1", "profile") / "profile.json", {**RECORD, **changes})
    return profile_text(layout, "tp1").splitlines()


def test_a_table_has_the_time_of_a_step_and_the_gaps_as_its_last_line(tmp_path):
    lines = shown(tmp_path)

    assert lines[0].startswith("profile of tp1: 8 requests at once, 64 tokens in, 40 out, 10 steps")
    at = lines.index(
        "rank TP-0: GPU busy 80.0 % of 10.00 ms; streams overlap: 10.00 ms in all; idle 2.00 ms in "
        "4 gaps (longest 1.250 ms); steps: 10 x DECODE bs=8"
    )
    assert [line.split()[:6] for line in lines[at + 2 : at + 5]] == [
        ["attention", "6.000", "0.600", "60.0", "%", "20"],
        ["other", "4.000", "0.400", "40.0", "%", "20"],
        ["(idle)", "2.000", "0.200", "4", "the", "device"],
    ]
    assert lines[at + 2].endswith(f"{LONG[:59]}…")
    assert lines[-1] == (
        "1 trace, 1.5 MB, in results/small/history/tp1/profile/3/traces: "
        "https://ui.perfetto.dev opens them"
    )


def test_streams_that_do_not_overlap_are_not_said_to(tmp_path):
    assert "overlap" not in "\n".join(shown(tmp_path, tables=[{**TABLE, "sum_ms": 8.0}]))


def test_an_engine_that_does_not_name_its_steps_has_no_time_per_step(tmp_path):
    lines = shown(tmp_path, tables=[{**TABLE, "steps": {}}])

    assert any(line.endswith("steps: not named by it") for line in lines)
    assert any(line.split()[:3] == ["attention", "6.000", "60.0"] for line in lines)


def test_a_damaged_trace_and_a_missing_one_are_told(tmp_path):
    damaged = {"rank": "TP-1", "problem": "x.gz: it ends within its events", "rows": []}
    text = "\n".join(shown(tmp_path, ranks=3, tables=[TABLE, damaged]))

    assert "2 of 3 ranks wrote a trace" in text
    assert "rank TP-1: its trace could not be read: x.gz: it ends within its events" in text
    assert "rank TP-0: GPU busy 80.0 %" in text


def test_an_empty_trace_is_told(tmp_path):
    empty = {**TABLE, "device": None, "rows": []}

    assert "rank TP-0: its trace has no kernel and no operator" in shown(tmp_path, tables=[empty])


def test_a_failed_profile_says_why_and_shows_nothing_else(tmp_path):
    failed = {"status": "failed", "reason": "server_crash", "detail": "it died"}
    lines = shown(tmp_path, **failed, traces=None, traces_in=None, tables=[])

    assert lines[1:] == ["failed: server_crash: it died"]


def test_a_window_with_fewer_steps_than_asked_for_is_a_doubt(tmp_path):
    shown(tmp_path, steps=12)
    (view,) = profile_views(Layout(tmp_path), ["tp1", "tp2"])

    assert [rank.problem for rank in view.ranks] == [True]
    assert view.ranks[0].summary.endswith("; fewer than the 12 steps asked for")


def test_a_prefill_in_the_window_is_a_doubt(tmp_path):
    shown(tmp_path, tables=[{**TABLE, "steps": {"DECODE bs=8": 10, "EXTEND bs=1 toks=64": 1}}])
    (view,) = profile_views(Layout(tmp_path), ["tp1"])

    assert view.ranks[0].problem
    assert view.ranks[0].summary.endswith("1 x EXTEND bs=1 toks=64; a prefill is among them")


def test_only_cells_that_have_one_are_shown(tmp_path):
    layout = Layout(tmp_path)
    assert (profile_views(layout, ["tp1"]), profiles_made(layout, ["tp1"])) == ([], [])
    assert profile_text(layout, "tp1") == "tp1 has no profile"

    shown(tmp_path)

    assert profiles_made(layout, ["tp0", "tp1"]) == ["tp1/3"]
    (view,) = profile_views(layout, ["tp0", "tp1"])
    assert (view.cell, view.ranks[0].problem, view.failure) == ("tp1", False, "")


def test_the_page_has_the_table_with_its_names_escaped(told):
    path = told.layout.launch("tp2", "profile") / "profile.json"
    write_json(path, {**RECORD, "cell": "tp2"})

    page, _ = render(told.layout, told.points)

    assert '<h2 id="profiles">Profiles</h2>' in page
    assert "<b>tp2</b>: 8 requests at once" in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page and "<b>x</b>" not in page
    assert "<td>6.000</td><td>0.600</td><td>60.0 %</td><td>20</td>" in page


def test_a_campaign_without_profiles_has_no_such_section(written):
    assert "profiles" not in render(written.layout, written.points)[0]
