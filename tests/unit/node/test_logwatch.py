"""A log that grows, and the line in it that proves a death while the front end answers."""

import pytest

from sgmatrix.node import logwatch
from sgmatrix.node.logwatch import LogWatch

STAMP = "[2026-12-03 09:15:01] "
RANK = "[2026-12-03 09:15:01 TP1 EP1] "
START = f"""{STAMP}server_args=ServerArgs(model_path='/models/x', watchdog_timeout=300)
Ignore import error when loading sglang.srt.models.x: No module named 'y'
{STAMP}Signal handler is not added because the engine is not in the main thread. This disables \
the SIGQUIT handler for cleaning up the process tree when a child process fails.
{STAMP}Watchdog Scheduler initialized.
{RANK}Load weight begin. avail mem=94.10 GB
\rLoading safetensors checkpoint shards:   0% Completed\rLoading shards: 100% Completed
{RANK}[Autotuner]: Skipping tactic <MoERunner> 1, due to failure while profiling: [TensorRT-LLM]\
[ERROR] Assertion failed: Failed to initialize cutlass TMA WS
{STAMP}INFO:     127.0.0.1:51022 - "GET /health HTTP/1.1" 503 Service Unavailable
{STAMP}The server is fired up and ready to roll!
{RANK}Decode batch. #running-req: 1024, #token: 371002, token usage: 1.00
{RANK}Decode out of memory happened. #retracted_reqs: 37, #new_token_ratio: 0.7100 -> 0.9100
{RANK}KV cache pool is full. Retract requests. #retracted_reqs: 2
{STAMP}Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.
"""

DEATHS = [
    f"{RANK}Scheduler hit an exception: Traceback (most recent call last):",
    "[2026-11-20 10:00:31] TP3] Scheduler hit an exception: Traceback (most recent call last):",
    f"{STAMP}DetokenizerManager hit an exception: Traceback (most recent call last):",
    f"{STAMP}Detokenizer hit an exception: Traceback (most recent call last):",
    f"{STAMP}TokenizerManager hit an exception: Traceback (most recent call last):",
    f"{STAMP}DataParallelController hit an exception: Traceback (most recent call last):",
    f"{STAMP}MultiTokenizerRouter hit an exception: Traceback (most recent call last):",
    "(Worker pid=7) ERROR 08-18 02:57:12 [multiproc_executor.py:932] WorkerProc hit an exception.",
    f"{STAMP}Subprocess scheduler_0 (pid=77) crashed with exit code -9. Triggering SIGQUIT",
    f"{STAMP}Subprocess detokenizer (pid=77) died",
    f"{STAMP}Received sigquit from a child process. It usually means the child failed.",
    f"{STAMP}Received sigquit from a child proces. It usually means the child failed.",
    f"{STAMP}SIGQUIT received. signum=3, frame=None. It usually means one child failed.",
    f"{RANK}Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    f"{RANK}Watchdog timeout (self.watchdog_timeout=300)",
    "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is",
    f"{STAMP}Scheduler or DataParallelController 77 terminated with -6",
    "sglang.SchedulerDiedError: gone",
    f"{STAMP}A child process of the engine failed",
    (
        "[rank0]:[E1203 09:15:02.1 a.cpp:690] [Rank 0] To avoid data inconsistency, we "
        "are taking the entire process down."
    ),
    "(EngineCore pid=25) ERROR 08-18 02:57:12 [core.py:1231] EngineCore failed to start.",
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.",
    "(EngineCore pid=25) ERROR 08-18 02:57:13 [m.py:2] Worker proc W-0 died unexpectedly",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "Fatal Python error: Segmentation fault",
    "!!!!!!! Segfault encountered !!!!!!!",
]
NO_DEATHS = [
    f"{RANK}TokenizerManager watchdog timeout (self.watchdog_timeout=60, self.soft=True)",
    f"{STAMP}Scheduler or DataParallelController 77 terminated with 0",
    f"{STAMP}Subprocess detokenizer (pid=77) exited with exit code 0",
    f"{STAMP}Receive: obj=GenerateReqInput(text='Scheduler hit an exception: SIGQUIT received')",
    f"{STAMP}SIGTERM received. signum=15 frame=None. Draining requests and shutting down...",
    '    logger.error(f"Scheduler hit an exception: {traceback}")',
    f"{STAMP}the prompt said that Scheduler hit an exception, and the child process died",
    "RuntimeError: a request that was refused",
]


@pytest.fixture
def log(tmp_path):
    class Log:
        path = tmp_path / "server.log"

        def add(self, text):
            with self.path.open("ab") as file:
                file.write(text if isinstance(text, bytes) else text.encode())

    return Log()


@pytest.mark.parametrize("line", DEATHS)
def test_a_death_is_seen_when_it_is_written_and_not_before(log, line):
    log.add(START)
    watch = LogWatch(log.path)
    assert watch.death() is None

    log.add(f"{line}\n{STAMP}GET /health 200\n")

    assert watch.death() == line


@pytest.mark.parametrize("line", NO_DEATHS)
def test_what_is_no_death_is_never_taken_for_one(log, line):
    log.add(START + line + "\n" + START)

    assert LogWatch(log.path).death() is None


def test_the_first_of_several_deaths_is_kept(log):
    watch = LogWatch(log.path)
    log.add(f"{DEATHS[0]}\n{DEATHS[8]}\n")
    first = watch.death()
    log.add(f"{DEATHS[12]}\n")

    assert (first, watch.death()) == (DEATHS[0], DEATHS[0])


def test_each_byte_is_read_once(log, monkeypatch):
    seen = []
    monkeypatch.setattr(logwatch, "cleaned", lambda data: seen.append(data) or data)
    watch = LogWatch(log.path)
    for text in ("one\ntwo", " ends\nthree\n", ""):
        log.add(text)
        watch.death()

    assert seen == [b"one\n", b"two ends\nthree\n", b""]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_line_that_is_written_in_pieces_is_one(log, newline):
    watch = LogWatch(log.path)
    seen = []
    for byte in DEATHS[0].encode() + newline:
        log.add(bytes([byte]))
        seen.append(watch.death())

    assert seen[-1] == DEATHS[0]
    assert set(seen[:-1]) == {None}


def test_a_death_behind_a_progress_bar_is_seen(log):
    watch = LogWatch(log.path)
    log.add("\rLoading:  50%\r")
    assert watch.death() is None
    log.add(f"Loading: 100%\r{DEATHS[0]}\n")

    assert watch.death() == DEATHS[0]


def test_colours_and_odd_bytes_are_read_through(log):
    log.add(b"\xff\xfe\x00\n\x1b[31mSIGQUIT\x1b[0m received. \xff\n")

    assert LogWatch(log.path).death() == "SIGQUIT received. \N{REPLACEMENT CHARACTER}"


def test_of_much_at_once_a_step_is_read_and_the_rest_next_time(log, monkeypatch):
    monkeypatch.setattr(logwatch, "_STEP_BYTES", len(START))
    log.add(START + DEATHS[0] + "\n")
    watch = LogWatch(log.path)

    assert [watch.death(), watch.death()] == [None, DEATHS[0]]


def test_of_a_line_without_an_end_only_the_beginning_is_kept(log):
    watch = LogWatch(log.path)
    for _ in range(3):
        log.add("x" * 1_000_000)
        assert watch.death() is None
        assert len(watch._partial) == 4096
    log.add("\n" + DEATHS[0] + "\n")

    assert watch.death() == DEATHS[0]


def test_a_log_that_comes_late_or_begins_anew_is_read(log):
    watch = LogWatch(log.path)
    assert watch.death() is None
    log.add(START + "half a li")
    assert watch.death() is None

    log.path.write_text(DEATHS[0] + "\n")

    assert watch.death() == DEATHS[0]


def test_a_secret_in_the_line_is_masked(log):
    log.add("terminate called after hf_abcdefghijklmnop\n")

    assert LogWatch(log.path).death() == "terminate called after ***"
