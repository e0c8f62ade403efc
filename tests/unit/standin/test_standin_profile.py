"""The profiler of the stand-in: a trace of so many steps for each rank, as SGLang's writes them."""

import gzip
import json


def generate(standin, *, prompts, tokens):
    sampling = {"max_new_tokens": tokens, "ignore_eos": True}
    ids = [[2 + n, 3, 4] for n in range(prompts)]
    standin.ask("POST", "/generate", {"input_ids": ids, "sampling_params": sampling})


def start(standin, folder, steps):
    body = {"output_dir": str(folder), "num_steps": steps, "profile_id": "x"}
    return standin.ask("POST", "/start_profile", body)[0]


def names(path):
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event["name"] for event in events if event["cat"] == "user_annotation"]


def test_it_ends_by_itself_after_so_many_steps(launch, tmp_path):
    standin = launch("--tp-size", "2")
    folder = tmp_path / "traces"
    assert start(standin, folder, 3) == 200

    generate(standin, prompts=2, tokens=8)

    traces = sorted(folder.iterdir())
    assert [path.name for path in traces] == ["x-TP-0.trace.json.gz", "x-TP-1.trace.json.gz"]
    for path in traces:
        assert len(names(path)) == 3
        assert names(path)[-1] == "step[DECODE bs=2]"
    assert standin.ask("POST", "/stop_profile", {})[0] == 500


def test_one_with_steps_left_looks_on_until_it_is_stopped(launch, tmp_path):
    standin = launch()
    assert start(standin, tmp_path / "traces", 100) == 200
    assert start(standin, tmp_path / "traces", 100) == 500

    generate(standin, prompts=1, tokens=4)
    assert not (tmp_path / "traces").exists()

    assert standin.ask("POST", "/stop_profile", {})[0] == 200
    assert names(tmp_path / "traces/x-TP-0.trace.json.gz") == ["step[DECODE bs=1]"] * 4
