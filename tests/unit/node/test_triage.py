"""What a server's log says about its end. The excerpts are our own, in the forms of SGLang."""

import pytest

from sgmatrix.core.reasons import is_environment
from sgmatrix.node import triage as triage_module
from sgmatrix.node.triage import Triage, clean_lines, triage

STAMP = "[2026-12-03 09:15:0{}]"
START = f"""{STAMP.format(1)} server_args=ServerArgs(model_path='/models/x', tp_size=4)
[2026-12-03 09:15:02 TP0] Load weight begin. avail mem=93.20 GB
"""
LOADED = """[2026-12-03 09:15:09 TP0] Load weight end. type=X, avail mem=31.10 GB.
"""
POOL = """[2026-12-03 09:15:11 TP0] KV Cache is allocated. #tokens: 204800, KV size: 18.00 GB
"""
READY = """[2026-12-03 09:15:19] INFO:     Uvicorn running on http://127.0.0.1:31000
[2026-12-03 09:15:20] The server is fired up and ready to roll!
"""
HIT = """[2026-12-03 09:15:30 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "sglang/srt/managers/scheduler.py", line 3000, in run_scheduler_process
"""
TORCH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 1 has 80 GiB."
BIND = (
    "[2026-12-03 09:15:13] ERROR:    [Errno 98] error while attempting to bind on address "
    "('127.0.0.1', 31000): address already in use"
)
AUTOTUNE = (
    "[2026-12-03 09:15:12 TP{0}] [Autotuner]: Skipping tactic <MoERunner> {0}, due to failure "
    "while profiling: [TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS\n"
)


@pytest.fixture
def log(tmp_path):
    def write(content):
        file = tmp_path / "server.log"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write


@pytest.mark.parametrize(
    ("reason", "before", "root"),
    [
        ("config_rejected", "usage: sglang serve [-h] --model-path MODEL_PATH\n",
         "sglang serve: error: unrecognized arguments: --enable-oea 1"),
        ("config_rejected", "usage: launch_server.py [-h]\n",
         "launch_server.py: error: argument --tp-size: invalid int value: 'two'"),
        ("config_rejected", "usage: launch_server.py [-h]\n",
         "launch_server.py: Error: the following arguments are required: --model-path"),
        ("oom_weights", START + HIT, TORCH),
        ("oom_kv_init", START + LOADED + HIT, TORCH),
        ("oom_runtime", START + LOADED + POOL + READY + HIT, TORCH),
        ("oom_runtime", START + LOADED + POOL + HIT, TORCH),
        ("oom_kv_init", START + LOADED + HIT,
         "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
        ("oom_kv_init", START + LOADED + HIT,
         "ValueError: No available memory for the cache blocks."),
        ("oom_weights", START,
         "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: 99999 bytes"),
        ("kernel_unsupported", START + HIT,
         "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
        ("nccl_error", START + HIT,
         "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:1, remote exited"),
        ("nccl_error", START, "ncclSystemError: System call (e.g. socket, malloc) failed."),
        ("port_in_use", START + LOADED + POOL, BIND),
        ("port_in_use", START,
         "RuntimeError: rpc_port 31233 is used by a process already (pid 77, sglang::scheduler)"),
        ("server_crash", START + LOADED + POOL + READY + HIT,
         "AttributeError: 'ForwardMetadata' object has no attribute 'page_table_1_flattened'"),
        ("server_crash", START, "[2026-12-03 09:15:03 TP1] KeyError: 'lm_head.weight'"),
        ("server_crash", START, "AssertionError"),
        ("server_crash", START, "Exception: Capture cuda graph failed: out of shared memory"),
        ("server_crash", START, "zmq.error.ZMQError: Operation not permitted"),
        ("server_crash", START, "Fatal Python error: Segmentation fault"),
    ],
)  # fmt: skip
def test_the_root_line_names_the_reason(log, reason, before, root):
    found = triage(log(f"{before}{root}\nReceived sigquit from a child process.\n"))

    assert found == Triage(reason, root, before.count("\n") + 1, {})


def test_a_port_that_is_taken_is_of_the_environment(log):
    line = "RuntimeError: rpc_port 31233 is used by a process already (pid 77, sglang::scheduler)"

    assert is_environment(triage(log(line)).reason)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n\n",
        START + LOADED + POOL + READY,
        START + "node:9:9 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\n",
        READY + '[2026-12-03 09:16:00] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 503\n',
        READY + "[2026-12-03 09:16:00 TP0] Decode out of memory happened. #retracted_reqs: 37\n",
        READY + "[2026-12-03 09:16:00] Warning: KeyError: is mentioned in a sentence\n",
        "  raise ValueError('shown by a traceback, not raised')\n",
    ],
)
def test_a_log_without_a_fatal_line_has_no_reason(log, content):
    assert triage(log(content)) == Triage(None, None, None, {})


def test_a_log_that_is_not_there_has_no_reason(tmp_path):
    assert triage(tmp_path / "absent.log") == Triage(None, None, None, {})


def test_errors_of_the_autotuner_are_counted_and_are_no_crash(log):
    noise = "".join(AUTOTUNE.format(n % 8) for n in range(160))

    assert triage(log(START + noise + READY)) == Triage(None, None, None, {"autotune_skipped": 160})


def test_noise_does_not_hide_the_crash_that_follows_it(log):
    noise = "Ignore import error when loading sglang.srt.models.x: No module named 'y'\n"
    content = noise * 2 + AUTOTUNE.format(0) + START + "RuntimeError: boom\n"

    assert triage(log(content)) == Triage(
        "server_crash", "RuntimeError: boom", 6, {"import_ignored": 2, "autotune_skipped": 1}
    )


@pytest.mark.parametrize(
    ("lines", "reason", "number"),
    [
        (["ValueError: first", TORCH], "server_crash", 1),
        ([TORCH, "ValueError: later"], "oom_weights", 1),
        ([TORCH, "ncclSystemError: later"], "oom_weights", 1),
        (["ncclSystemError: first", TORCH], "nccl_error", 1),
        (["x", "KeyError: 'a'", "KeyError: 'b'"], "server_crash", 2),
    ],
)
def test_the_first_fatal_line_wins(log, lines, reason, number):
    found = triage(log("\n".join(lines)))

    assert (found.reason, found.line_number) == (reason, number)
    assert found.root_line == lines[number - 1]


def test_colours_progress_bars_and_odd_bytes_are_read_through(log):
    bar = b"".join(b"\rLoading checkpoint shards: %3d%% done" % n for n in range(0, 101, 10))
    content = (
        b"\x1b[31mWARN\x1b[0m na\xefve byte\r\n"
        + bar
        + b"\n\x1b]0;title\x07\x1b[1;31mRuntimeError\x1b[0m: \xff\xfe broken\x1b[K\n"
    )

    found = triage(log(content))

    assert found.reason == "server_crash"
    assert (
        found.root_line == "RuntimeError: \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} broken"
    )
    assert found.line_number == 3  # as an editor counts: a progress bar is one line


def test_a_fatal_word_behind_a_progress_bar_is_found(log):
    found = triage(log("\rLoading:  50%\rLoading: 100%\rRuntimeError: boom\n"))

    assert (found.root_line, found.line_number) == ("RuntimeError: boom", 1)


def test_a_line_is_cut_so_that_records_stay_small(log):
    assert triage(log("RuntimeError: " + "x" * 9999)).root_line == "RuntimeError: " + "x" * 486


def test_of_a_huge_log_start_and_end_are_read_and_lines_are_counted_right(log, monkeypatch):
    monkeypatch.setattr(triage_module, "_READ_BYTES", 100)
    middle = "RuntimeError: in the middle\n" + "y" * 99 + "\n"
    file = log("first\n" + "x" * 99 + "\n" + middle + "z" * 80 + "\nKeyError: last\n")

    assert [number for number, _ in clean_lines(file)] == [1, 4, 5, 6]
    assert (triage(file).root_line, triage(file).line_number) == ("KeyError: last", 6)
