"""How SGLang's clients are called, and how a call of one ends."""

import json
import os
import resource
import signal
from pathlib import Path

import pytest

from builders import client_line
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.load import client as client_module
from sgmatrix.load.client import arguments, command, run_client
from sgmatrix.load.offer import Offer
from sgmatrix.node import proc
from sgmatrix.node.server import Server
from standin.launcher import alive, eventually

OFFER = Offer("random-ids", 4, 64, 32, 16, 7)
RUST = {"kind": "rust", "python": "/py", "extension": "/x/_bench.so", "vocab_size": 1024}
PYTHON = {"kind": "python", "python": "/py", "extension": None, "vocab_size": 1024}


@pytest.fixture
def warden(process):
    return process()


@pytest.fixture
def server(warden, tmp_path):
    """A server that nobody talks to; its warden is a helper process."""
    return Server(
        warden=proc.identify(warden.pid),
        run_dir=tmp_path,
        attempt_dir=tmp_path,
        port=31000,
        nonce="tp1-0123abcd",
        process=proc.identify(os.getpid()),
    )


# --- the command line ----------------------------------------------------------------------------

COMMON = {
    "--backend=sglang",
    "--base-url=http://127.0.0.1:31000",
    "--dataset-name=random-ids",
    "--num-prompts=16",
    "--max-concurrency=4",
    "--random-input-len=64",
    "--random-output-len=32",
    "--random-range-ratio=1.0",
    "--warmup-requests=0",
    "--ready-check-timeout-sec=5",
    "--seed=7",
    "--output-file=/out/result.jsonl",
    "--tokenize-prompt",
    "--output-details",
    "--disable-tqdm",
}


@pytest.mark.parametrize(
    ("client", "own"),
    [
        (RUST, {"--model=tp1-0123abcd", "--vocab-size=1024", "--disable-retokenize"}),
        (PYTHON, {"--model=/models/a b", "--served-model-name=tp1-0123abcd"}),
    ],
    ids=["rust", "python"],
)
def test_a_client_is_told_the_whole_load_and_only_that(server, client, own):
    words = arguments(OFFER, client, server, "/models/a b", Path("/out/result.jsonl"), None)

    assert set(words) == COMMON | own
    assert len(words) == len(set(words))


def words(offer, client, server, prompts=None):
    found = arguments(offer, client, server, "/m", Path("/out/result.jsonl"), prompts)
    return dict(word[2:].partition("=")[::2] for word in found)


def test_an_open_loop_has_a_rate_and_only_the_bound_that_was_asked_for(server):
    free = Offer("random-ids", None, 64, 32, 16, 7, request_rate=0.25)
    bound = Offer("random-ids", 9, 64, 32, 16, 7, request_rate=0.25)

    assert words(free, RUST, server)["request-rate"] == "0.25"
    assert "max-concurrency" not in words(free, RUST, server)
    assert words(bound, RUST, server)["max-concurrency"] == "9"
    assert "request-rate" not in words(OFFER, RUST, server)


def test_a_shared_prefix_is_whole_groups_of_ids(server):
    prompts = {"groups": 4, "prefix_len": 48}
    found = words(Offer("shared-prefix", 4, 64, 32, 16, 7, prompts=prompts), PYTHON, server)

    assert found["dataset-name"] == "generated-shared-prefix"
    assert (found["gsp-num-groups"], found["gsp-prompts-per-group"]) == ("4", "4")
    assert (found["gsp-system-prompt-len"], found["gsp-question-len"]) == ("48", "16")
    assert found["gsp-output-len"] == "32"
    assert "tokenize-prompt" in found
    assert not [name for name in found if name.startswith("random")]


@pytest.mark.parametrize("dataset", ["topical", "custom"])
def test_prompts_of_a_file_are_text_with_the_output_length_that_is_asked_for(server, dataset):
    offer = Offer(dataset, 4, 64, 32, 16, 7)
    found = words(offer, PYTHON, server, Path("/out/prompts.jsonl"))

    assert (found["dataset-name"], found["dataset-path"]) == ("custom", "/out/prompts.jsonl")
    assert found["sharegpt-output-len"] == "32"
    assert "tokenize-prompt" not in found  # SGLang's custom data set refuses it


def test_each_client_runs_through_its_runner_the_rust_one_in_a_bare_interpreter():
    folder = Path(client_module.__file__).parent

    assert command(RUST, ["--a"]) == [
        *("/py", "-I", "-S", str(folder / "rust_client.py"), "/x/_bench.so", "--a")
    ]
    python = str(folder / "python_client.py")
    assert command(PYTHON, ["--a"]) == ["/py", python, "1", "--a"]
    assert command(PYTHON, ["--a"], 0.5) == ["/py", python, "0.5", "--a"]


# --- a call and its end --------------------------------------------------------------------------


@pytest.fixture
def run(client, server, tmp_path):
    def run(**options):
        settings = client.settings()
        given = {"deadline_s": 60, **options}
        return run_client(OFFER, settings, server, "/m", tmp_path / "out" / "1", **given)

    return run


def test_a_call_that_goes_well_gives_its_one_line(run, client, tmp_path):
    client.answers(client_line(16))
    client.does("echo to stdout; echo to stderr >&2")
    done = run()

    assert done.line == client_line(16)
    assert (done.exit_code, done.timed_out) == (0, False)
    assert done.last_words == "to stderr"
    assert (tmp_path / "out/1/client.log").read_text() == "to stdout\nto stderr\n"


def test_a_client_sees_the_engine_s_environment_and_works_in_an_empty_folder(
    run, client, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", "/from/the/caller")
    client.script.write_text('#!/bin/sh\necho "[$PYTHONPATH]" "$(ls -A | wc -l)"\npwd\n')
    run()

    seen, folder = (tmp_path / "out/1/client.log").read_text().splitlines()
    assert seen.split() == ["[]", "0"]
    assert not Path(folder).exists()  # it is taken away again


def test_what_a_client_took_of_the_machine_is_known_while_it_runs(run, client):
    client.answers(client_line(16))
    # more than one look at it, whatever the machine is busy with
    client.does("s=$(date +%s); while [ $(($(date +%s) - s)) -lt 2 ]; do :; done")
    done = run()

    assert done.looks[0].cpu_s == 0
    assert done.looks[-1].cpu_s > 0
    assert done.looks[-1].time_s <= done.wrote_s + 1
    assert [one.cpu_s for one in done.looks] == sorted(one.cpu_s for one in done.looks)


def test_the_window_is_the_duration_before_the_line_where_the_begin_was_not_told(run, client):
    client.answers(client_line(16, duration_s=0.5))
    done = run()

    assert done.began_s is None
    assert done.window_s(0.5) == (done.wrote_s - 0.5, done.wrote_s)
    assert done.window_s(None) == (done.wrote_s - done.wall_s, done.wrote_s)


def test_the_window_begins_when_the_client_said_so_and_ends_before_it_counts_again(run, client):
    """It says so, pauses for a second, runs for 0.5 s here, and counts for a while."""
    client.answers(client_line(16, duration_s=0.5))
    said = "Warmup completed with 0 sequences. Starting main benchmark run..."
    now = "date +%s.%N"
    client.does(f"{now} > before; echo '{said}'; {now} > after; sleep 2; echo counted")
    done = run()

    before_s, after_s = (float((client.folder / x).read_text()) for x in ("before", "after"))
    tick_s = 0.02  # times of files are as coarse as the kernel's clock
    assert before_s - tick_s <= done.began_s - 1 <= after_s + tick_s
    assert done.window_s(0.5) == (done.began_s, done.began_s + 0.5)
    assert done.began_s + 0.5 < done.wrote_s


def test_a_client_may_open_a_socket_per_request(run, client, monkeypatch, tmp_path):
    monkeypatch.setattr(client_module, "_SOCKETS_PER_REQUEST", 100)
    client.does("ulimit -n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        run()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert (tmp_path / "out/1/client.log").read_text() == "400\n"


def test_a_load_that_needs_more_files_than_are_allowed_is_refused_with_the_mend(run, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (8, 12))

    with pytest.raises(
        SgmatrixError, match="4 requests in flight need 16 open files, 12"
    ) as caught:
        run()

    assert (caught.value.code, caught.value.fix) == (
        "client_setup",
        "ulimit -Hn 16, or a lower concurrency",
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, None),
        ("", None),
        ('{"a": 1}\n{"a": 2}\n', None),
        ('{"a": 1}\n\n', {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1', None),
        ("[1]\n", None),
    ],
    ids=["no file", "empty", "two lines", "blank line", "no line end", "cut", "no mapping"],
)
def test_only_one_whole_line_is_a_result(run, client, content, line):
    if content is not None:
        client.answers(content, requests=16)
    done = run()

    assert done.line == line
    assert done.exit_code == 0


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85"])
def test_a_line_is_one_line_whatever_the_model_wrote(tmp_path, sign):
    """The Rust client writes these as they are; `str.splitlines` takes each for a line's end."""
    line = client_line(2, generated_texts=[f"a{sign}b", "c"])
    path = tmp_path / "result.jsonl"
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")

    assert client_module._only_line(path) == line


def test_a_client_that_fails_has_its_exit_code_and_last_words(run, client):
    client.does("echo 'OfflineModeIsEnabled: no network'; echo; exit 3")
    done = run()

    assert (done.line, done.exit_code, done.timed_out) == (None, 3, False)
    assert done.last_words == "OfflineModeIsEnabled: no network"


def test_a_client_that_says_nothing_has_said_so(run, client):
    client.does("exit 1")

    assert run().last_words == "no output"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_that_somebody_ended_says_by_which_signal(run, client, number):
    client.does(f"kill -{int(number)} $$; sleep 5")

    assert run().killed_by == number


def test_a_client_that_crashes_was_ended_by_nobody(run, client):
    client.does(f"kill -{int(signal.SIGSEGV)} $$; sleep 5")

    assert run().killed_by is None


def test_what_a_client_leaves_in_its_group_is_ended_with_it(run, client, tmp_path):
    client.does("sh -c 'trap \"\" TERM; echo $$ > left; sleep 600' & sleep 0.3")

    run()

    pid = int((tmp_path / "client" / "left").read_text())
    eventually(lambda: not alive(pid), "the rest of the group is ended")


def test_a_client_that_is_killed_has_no_exit_code(run, client):
    client.does("kill -9 $$")
    done = run()

    assert (done.exit_code, done.timed_out) == (None, False)


STAY = 'sleep 600 & echo $! > "{0}/pid"; echo up; wait'


def test_a_client_that_does_not_finish_is_ended_at_the_deadline_with_its_children(
    run, client, tmp_path
):
    client.does(STAY.format(tmp_path))
    done = run(deadline_s=0.3)

    assert (done.line, done.exit_code, done.timed_out) == (None, None, True)
    assert done.last_words == "up"
    child = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(child), "the signal has reached the whole group")


def test_a_client_that_ignores_the_signal_is_killed(run, client, tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "_END_S", 0.1)
    client.does(f"trap '' TERM; echo $$ > '{tmp_path}/pid'; while true; do sleep 600; done")
    done = run(deadline_s=0.3)

    assert done.timed_out
    assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("resumed", ["", "(sleep 0.3; kill -CONT $$) &"])
def test_a_client_that_somebody_stopped_for_a_while_is_disturbed(run, client, tmp_path, resumed):
    client.does(f"{resumed} echo $$ > stopped; kill -STOP $$; sleep 600")

    with pytest.raises(SgmatrixError, match="interrupted: the load client was stopped"):
        run()

    pid = int((tmp_path / "client" / "stopped").read_text())
    eventually(lambda: not alive(pid), "the client is ended")


def test_a_deadline_that_has_passed_already_ends_the_client_at_once(run, client):
    client.does("sleep 600")

    assert run(deadline_s=-1).timed_out


def test_the_end_of_the_server_s_warden_ends_the_client(run, client, warden, tmp_path):
    os.mkfifo(tmp_path / "started")
    client.does(f"echo > '{tmp_path}/started'; sleep 600")

    def end_warden():
        (tmp_path / "started").read_text()  # the client is running
        os.kill(warden.pid, signal.SIGKILL)

    done = run(meanwhile=end_warden)

    assert (done.line, done.exit_code, done.timed_out) == (None, None, False)


def test_a_warden_that_ended_before_the_client_was_watched_ends_it_too(run, client, warden):
    client.does("sleep 600")

    def end_warden():
        warden.kill()
        warden.wait()

    done = run(meanwhile=end_warden)

    assert (done.line, done.exit_code, done.timed_out) == (None, None, False)


def test_what_is_done_meanwhile_may_fail_and_the_client_is_ended(run, client, tmp_path):
    os.mkfifo(tmp_path / "started")
    client.does(f"echo $$ > '{tmp_path}/started'; sleep 600")
    pids = []

    def fail():
        pids.append(int((tmp_path / "started").read_text()))
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        run(meanwhile=fail)

    assert not alive(pids[0])


def test_a_client_that_cannot_be_run_is_the_environment_s_fault(run, client):
    client.script.unlink()

    with pytest.raises(SgmatrixError, match="No such file or directory") as caught:
        run()

    assert caught.value.code == "client_setup"
    assert caught.value.fix == "make setup"


JOB = """
import json, sys
from pathlib import Path
from sgmatrix.load.client import run_client
from sgmatrix.load.offer import Offer
from sgmatrix.node import proc
from sgmatrix.node.server import Server
known = proc.identify(int(sys.argv[1]))
server = Server(known, Path("."), Path("."), 1, "n", known)
client, folder = json.loads(sys.argv[2]), Path(sys.argv[3])
run_client(Offer("d", 1, 1, 1, 1, 1), client, server, "/m", folder, deadline_s=600)
"""


def test_a_client_does_not_outlive_its_job(client, warden, python, tmp_path):
    os.mkfifo(tmp_path / "started")
    client.does(f"echo $$ > '{tmp_path}/started'; exec sleep 600")
    job = python(JOB, str(warden.pid), json.dumps(client.settings()), str(tmp_path / "out"))
    pid = int((tmp_path / "started").read_text())
    assert alive(pid)
    job.kill()

    eventually(lambda: not alive(pid), "the kernel ends the client")
