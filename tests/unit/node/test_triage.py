"""What a server's log says about its end. The excerpts are our own, in the forms of SGLang."""

import pytest

from sgmatrix.core.reasons import REASONS, is_environment
from sgmatrix.node import triage as triage_module
from sgmatrix.node import triage_rules as rules
from sgmatrix.node.triage import Triage, triage

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


FRAMES = """Traceback (most recent call last):
  File "sglang/srt/managers/scheduler.py", line 3000, in {0}
    raise RuntimeError("Not enough memory. Please try to increase --mem-fraction-static.")
"""
DECODE = "[2026-12-03 09:15:40 TP0] Decode batch. #running-req: 4, #token: 99, token usage: 0.10\n"
CHAIN = "During handling of the above exception, another exception occurred"
NOTHING = Triage(None, None, None, {}, None)
SIGQUIT = """[2026-12-03 09:15:31] SIGQUIT received. signum=None, frame=None. It usually means one
Killed
Traceback (most recent call last):
  File "sglang/srt/entrypoints/engine.py", line 2030, in _wait_for_scheduler_ready
KeyboardInterrupt
EOFError
UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown
"""


def found(file, **more):
    seen = triage(file, **more)
    return (seen.reason, seen.root_line, seen.line_number, seen.harmless)


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
        ("leftover_process", START,
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
    text = f"{before}{root}\nReceived sigquit from a child process.\n{SIGQUIT}"

    assert found(log(text)) == (reason, root, before.count("\n") + 1, {})


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
    assert triage(log(content)) == NOTHING


def test_a_log_that_is_not_there_has_no_reason(tmp_path):
    assert triage(tmp_path / "absent.log") == NOTHING
    assert triage(tmp_path) == NOTHING  # a folder


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
    assert found(log("\n".join(lines))) == (reason, lines[number - 1], number, {})


def test_errors_of_the_autotuner_are_counted_and_are_no_crash(log):
    noise = "".join(AUTOTUNE.format(n % 8) for n in range(160))

    assert triage(log(START + noise + READY)) == Triage(
        None, None, None, {"autotune_skipped": 160}, None
    )


MULTI_LINE = """[2026-12-03 09:15:12 TP1] [Autotuner]: Skipping tactic <Runner> 3, due to failure \
while profiling: Traceback (most recent call last):
  File "flashinfer/autotuner.py", line 480, in profile
RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS (a.cu:60)
1       0x7c6dd0a58b16 tensorrt_llm::common::throwRuntimeError(char const*, int) + 97
2       0x7c6dd11ca0ad /cache/fused_moe_120.so(+0x9080ad) [0x7c6dd11ca0ad]

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "flashinfer/autotuner.py", line 490, in profile
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


def test_a_skipped_tactic_of_many_lines_is_one(log):
    assert found(log(START + MULTI_LINE * 3)) == (None, None, None, {"autotune_skipped": 3})


def test_the_same_assertion_is_fatal_when_the_scheduler_dies_of_it(log):
    root = "RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA"

    assert found(log(START + MULTI_LINE + HIT + root)) == (
        "kernel_unsupported", root, 16, {"autotune_skipped": 1}
    )  # fmt: skip


def test_noise_does_not_hide_the_crash_that_follows_it(log):
    noise = "Ignore import error when loading sglang.srt.models.x: No module named 'y'\n"
    content = noise * 2 + AUTOTUNE.format(0) + START + "RuntimeError: boom\n"

    assert found(log(content)) == (
        "server_crash", "RuntimeError: boom", 6, {"import_ignored": 2, "autotune_skipped": 1}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("head", "counter"),
    [
        ("[2026-12-03 09:15:02] Failed to load plugin oea from group x", "plugin_failed"),
        ("[2026-12-03 09:15:02] Failed to apply hooks to x.y", "plugin_failed"),
        ("[2026-12-03 09:15:40] ERROR:    Exception in ASGI application", "request_errors"),
        ("Ignore import error when loading sglang.srt.models.x: ", "import_ignored"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_traceback_that_a_caught_error_prints_belongs_to_it(log, head, counter, newline):
    caught = f"{head}\n{FRAMES.format('load')}ModuleNotFoundError: No module named 'oea'\n"
    text = START + caught + HIT + TORCH

    assert found(log(text.replace("\n", newline))) == ("oom_weights", TORCH, 10, {counter: 1})


# -- each rule ---------------------------------------------------------------------------------

EXAMPLES = {
    # advice -> (line, the reason); all at the stage where an out of memory is one of the weights
    "the kernel wants more shared": (
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, "
        "Hardware limit: 101376. Reducing block sizes or `num_stages` may help."),
        "kernel_unsupported",
    ),
    "the model's shape": ("AssertionError: 12 heads are not divisible by 5", "server_crash"),
    "the model is not on": (
        "OSError: /models/x is not a local folder and is not a valid model identifier",
        "server_crash",
    ),
    "make room on the disk": ("OSError: [Errno 28] No space left on device", "interrupted"),
    "the engine lacks": ("ModuleNotFoundError: No module named 'dill'", "server_crash"),
    "a fault of the attention": (
        "AttributeError: 'ForwardMetadata' object has no attribute 'page_table_1_flattened'",
        "server_crash",
    ),
    "CUDA_LAUNCH_BLOCKING": (
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "server_crash",
    ),
    "the KV pool is full": (
        "RuntimeError: Prefill out of memory. Try to lower your batch size.",
        "oom_runtime",
    ),
    "more GPUs": (TORCH, "oom_weights"),
    "lower mem_fraction_static, max": (
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1 GiB",
        "oom_runtime",
    ),
    "another process or the weights": (
        "node:9:9 [0] enqueue.cc:1 NCCL WARN Cuda failure 2 'out of memory'",
        "oom_runtime",
    ),
    "a rank did not come": (
        ("[rank0]:[E1203 09:15:02.1 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=7)"),
        "nccl_error",
    ),
    "read the first NCCL": ("node:9:9 [0] misc/a.cc:3 NCCL WARN Call to x failed", "nccl_error"),
    "a batch took longer": (
        ("[2026-12-03 09:20:13 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, "
        "self.soft=False)"),
        "server_crash",
    ),
    "native code died": ("!!!!!!! Segfault encountered !!!!!!!", "server_crash"),
    "killed from outside": (
        ("[2026-12-03 09:15:02] Subprocess scheduler_0 (pid=77) crashed with exit code -9. "
        "Triggering SIGQUIT for cleanup..."),
        "server_crash",
    ),
    "the other end was gone": ("ConnectionResetError: [Errno 104] reset by peer", "server_crash"),
    "end the process that": ("OSError: [Errno 98] Address already in use", "port_in_use"),
    "a process of an earlier": ("zmq.error.ZMQError: Address already in use", "leftover_process"),
    "correct or leave out": (
        "launch_server.py: error: --tp must be a power of two",
        "config_rejected",
    ),
    "choose another attention, MoE": ("RuntimeError: sm_120 not supported", "kernel_unsupported"),
    "raise mem_fraction_static": (
        ("ValueError: Loaded weights leave no GPU memory for the KV cache under "
        "--mem-fraction-static=0.5. Raise --mem-fraction-static above 0.612"),
        "oom_kv_init",
    ),
    "what the line says": (
        "sglang-oea: refused: OEA_ENABLE=1 without OEA_K0; fix: set OEA_K0, for example to 4",
        "plugin_inactive",
    ),
    "the KV pool is larger": (None, "oom_kv_init"),  # see the test of the phases
}  # fmt: skip


@pytest.mark.parametrize("begin", EXAMPLES)
def test_a_line_of_each_kind_has_its_reason_and_its_advice(log, begin):
    line, reason = EXAMPLES[begin]
    seen = triage(log(START + (line or f"{LOADED}{TORCH}")))

    assert seen.reason == reason
    assert seen.root_line == (line or TORCH)
    assert seen.advice.startswith(begin)


def test_every_advice_has_an_example_and_every_rule_a_class():
    every = [*rules.HARMLESS_LINES, *rules.EXCEPTIONS, *rules.FATAL_LINES, *rules.DEATHS]
    advices = {rule.advice for rule in every if rule.reason != rules.HARMLESS}

    assert len(advices) == len(EXAMPLES)
    assert all(any(advice.startswith(begin) for begin in EXAMPLES) for advice in advices)
    assert all(rule.counter for rule in rules.HARMLESS_LINES)
    assert {rule.reason for rule in every} <= REASONS.keys() | {rules.HARMLESS}
    assert all(rule.needles for rule in every if rule not in rules.EXCEPTIONS)


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        # of rules with several forms, those that have no example above
        ("oom_kv_init", "RuntimeError: Not enough GPU memory for hybrid (mamba) state cache."),
        ("oom_kv_init", "RuntimeError: Hybrid (mamba/linear-attention) state cache is too small"),
        ("oom_kv_init", "RuntimeError: SWA pool cap (9 tokens) leaves no room for the KV pool"),
        ("oom_kv_init", "ValueError: max seq len (9) is larger than the tokens stored in KV cache"),
        ("oom_runtime", "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller"),
        ("oom_runtime", "[2026-12-03 09:15:02 TP0] Decode out of memory. Try to lower your batch"),
        ("oom_runtime", "terminate called after throwing an instance of 'std::bad_alloc'"),
        ("oom_weights", "RuntimeError: HIP out of memory. Tried to allocate 2.00 GiB"),
        ("oom_weights", "RuntimeError: CUDA error: out of memory"),
        ("oom_weights", "MemoryError"),
        ("oom_weights", "[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried"),
        ("kernel_unsupported", "RuntimeError: CUDA error: invalid device function"),
        ("kernel_unsupported", "ValueError: FA3 is not supported on this GPU"),
        ("kernel_unsupported", "ValueError: Unsupported compute capability: 7.5"),
        ("kernel_unsupported", "RuntimeError: kernel requires compute capability >= 9.0"),
        ("kernel_unsupported", "AssertionError: FlashMLA only supports SM90"),
        ("kernel_unsupported", "RuntimeError: Assertion error (a:46): Unsupported architecture"),
        ("kernel_unsupported", "ptxas fatal   : Value 'sm_120a' is not defined for option 'gpu'"),
        ("kernel_unsupported", "python: x/Ops.cpp:12: void f(): Assertion `isMma()' failed."),
        ("server_crash", "x.cu:93: f: block: [1,0,0], thread: [3,0,0] Assertion `i < n` failed."),
        ("nccl_error", "RuntimeError: NCCL error: unhandled system error"),
        ("nccl_error", "ncclUnhandledCudaError: Call to CUDA function failed."),
        ("leftover_process", "ValueError: nccl_port at 31233 is not available in 30 seconds."),
        ("leftover_process", "RuntimeError: engine_info_bootstrap_port 6789 is already in use. "),
        ("leftover_process", ("torch.distributed.DistNetworkError: The server socket has failed to "
         "listen on any local network address. port: 29500, name: EADDRINUSE")),
        ("server_crash", "Fatal Python error: Bus error"),
        ("server_crash", "terminate called after throwing an instance of 'c10::Error'"),
        ("server_crash", "Segmentation fault (core dumped)"),
        ("server_crash", "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the files"),
        ("server_crash", "ValueError: tp_size must be a multiple of dp_size"),
        ("server_crash", "ValueError: Model architectures ['X'] are not supported for now"),
        ("server_crash", "IndexError: index out of range in self"),
        ("server_crash", "RuntimeError: Rank 0 scheduler died during initialization (exit code 9)"),
    ],
)  # fmt: skip
def test_other_forms_of_a_kind_are_of_the_same_class(log, reason, line):
    seen = triage(log(START + line))

    assert (seen.reason, seen.root_line, seen.line_number) == (reason, line.strip(), 3)


@pytest.mark.parametrize(
    "line",
    [
        "[2026-12-03 09:15:02 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1",
        "[2026-12-03 09:15:02] FA3 is not supported on this GPU, falling back to triton",
        "x/cuda/__init__.py:230: UserWarning: capability sm_120 is not compatible with this torch",
        "[2026-12-03 09:15:02] Port 31000 is already in use, trying port 31001",
        "[2026-12-03 09:15:02] port 31233 is in use. Waiting for 15 seconds for rpc_port",
        "[2026-12-03 09:15:02] server_args=ServerArgs(note='CUDA out of memory. Error: x')",
        "[2026-12-03 09:15:02] Receive: obj=GenerateReqInput(text='terminate called after')",
        "    raise RuntimeError('Not enough memory. Please try to increase --mem-fraction-static')",
        "[2026-12-03 09:15:02] TokenizerManager watchdog timeout (self.soft=True)",
        "csrc/a.cuh(110): error: identifier undefined",
        "c++: error: no input files",
        "[2026-12-03 09:15:02] Assertion of the licence failed",
        "Killed",
        "KeyboardInterrupt",
        "[2026-12-03 09:15:02] SIGTERM received. signum=None frame=None. Draining requests",
        "[2026-12-03 09:15:02 TP1] Setup Custom allreduce failed with . To silence this warning",
        "[2026-12-03 09:15:02] Scheduler or DataParallelController 7 terminated with 0",
        "[2026-12-03 09:15:02] Subprocess detokenizer (pid=7) exited with exit code 0",
    ],
)
def test_a_line_that_only_looks_bad_is_no_root(log, line):
    assert triage(log(START + line + "\n")) == NOTHING


@pytest.mark.parametrize(
    ("before", "reason", "advice"),
    [
        (START + HIT, "oom_weights", rules.SMALLER_WEIGHTS),
        (START + LOADED + HIT, "oom_kv_init", rules.POOL_TOO_LARGE),
        (START + LOADED + POOL + HIT, "oom_runtime", rules.LESS_ROOM),
        # another rank has come farther
        (START + (LOADED + POOL).replace("TP0", "TP1") + HIT, "oom_weights", rules.SMALLER_WEIGHTS),
        (START + LOADED + HIT.replace("TP0", "TP1"), "oom_kv_init", rules.POOL_TOO_LARGE),
        # a frame knows better
        (START + LOADED + POOL + FRAMES.format("load_model"), "oom_weights", rules.SMALLER_WEIGHTS),
        (START + FRAMES.format("alloc_memory_pool"), "oom_kv_init", rules.POOL_TOO_LARGE),
        (START + LOADED + FRAMES.format("capture_one"), "oom_runtime", rules.LESS_ROOM),
    ],
)  # fmt: skip
def test_an_out_of_memory_is_of_the_phase_in_which_its_rank_was(log, before, reason, advice):
    seen = triage(log(before + TORCH))

    assert (seen.reason, seen.advice, seen.root_line) == (reason, advice, TORCH)


@pytest.mark.parametrize(
    ("line", "http_port", "reason"),
    [
        (BIND, 31000, "port_in_use"),
        (BIND, None, "port_in_use"),
        (BIND, 31001, "leftover_process"),
        ("RuntimeError: rpc_port 31233 is used by a process already (pid 31000, x)", 31000,
         "leftover_process"),
        (("ValueError: rpc_port at 31233 is not available in 30 seconds. rpc_port is used by a "
         "process already. process.cmdline()=['python', '--port', '31000'] pid=7"), 31000,
         "leftover_process"),
        ("ValueError: port_base at 31000 is not available in 30 seconds.", 31000, "port_in_use"),
        ("zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:31233')", 31000,
         "leftover_process"),
        ("zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:31000')", 31000,
         "port_in_use"),
        ("OSError: [Errno 98] Address already in use", 31000, "port_in_use"),
    ],
)  # fmt: skip
def test_a_held_internal_port_is_told_from_the_http_port(log, line, http_port, reason):
    seen = triage(log(line), http_port=http_port)

    assert (seen.reason, seen.root_line) == (reason, line)


# -- which line ----------------------------------------------------------------------------------


def test_an_attention_back_end_s_fault_is_no_out_of_memory_though_one_follows(log):
    lost = "AttributeError: 'ForwardMetadata' object has no attribute 'page_table_1_flattened'"
    text = START + LOADED + POOL + READY + HIT + lost + "\n" + TORCH + "\n" + SIGQUIT

    assert found(log(text)) == ("server_crash", lost, 9, {})


@pytest.mark.parametrize(
    "sentence",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
def test_of_chained_exceptions_the_first_is_the_root(log, sentence):
    text = f"{START}{HIT}KeyError: 'first'\n\n{sentence}\n\n{FRAMES.format('x')}{TORCH}\n"

    assert found(log(text)) == ("server_crash", "KeyError: 'first'", 5, {})


def test_lines_of_other_ranks_between_do_not_hide_the_root(log):
    other = "[2026-12-03 09:15:30 TP3] Prefill batch. #new-seq: 1\nnode:1:1 [0] NCCL INFO comm\n"
    head, frame = HIT.splitlines(keepends=True)
    text = START + head + other + frame + other + "pkg.Unsupported: a name of its own\n" + SIGQUIT

    assert found(log(text)) == ("server_crash", "pkg.Unsupported: a name of its own", 9, {})


def test_the_first_rank_that_fails_is_the_root(log):
    text = START + HIT + "ValueError: of rank 0\n" + HIT.replace("TP0", "TP1") + TORCH

    assert found(log(text)) == ("server_crash", "ValueError: of rank 0", 5, {})


def test_what_other_processes_print_because_one_died_is_the_root_only_when_alone(log):
    echo = "RuntimeError: [a.cc:5] Connection closed by peer [127.0.0.1]:4711\n"
    died = "[2026-12-03 09:15:32] Subprocess scheduler_1 (pid=7) crashed with exit code -9. T\n"

    assert found(log(echo))[:2] == ("server_crash", echo.strip())
    assert found(log(echo + died))[:2] == ("server_crash", died.strip())
    assert found(log(echo + died + TORCH))[:2] == ("oom_weights", TORCH)


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Initialization failed. Please see the error messages above.",
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -6). If exit code",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ],
)
def test_the_parent_s_word_that_a_child_died_is_the_root_only_when_alone(log, line):
    parent = FRAMES.format("_wait_for_scheduler_ready") + line + "\n"

    assert found(log(START + parent)) == ("server_crash", line, 6, {})
    assert found(log(START + parent + HIT + TORCH))[:2] == ("oom_weights", TORCH)


def test_a_traceback_that_breaks_off_leaves_its_head(log):
    head, frame = HIT.splitlines(keepends=True)

    assert found(log(START + head + frame)) == ("server_crash", head.strip(), 3, {})


def test_the_last_line_of_argparse_is_the_root(log):
    text = "usage: x.py [-h]\nx.py: error: argument --a: bad\nx.py: error: argument --b: bad\n"

    assert found(log(text)) == ("config_rejected", "x.py: error: argument --b: bad", 3, {})


@pytest.mark.parametrize(
    ("error", "after"),
    [
        ("RuntimeError: caught", READY),
        (TORCH, READY),
        ("ncclSystemError: x", READY),
        ("RuntimeError: caught", READY + DECODE),
        ("RuntimeError: caught", DECODE),
    ],
)
def test_what_the_server_went_on_after_is_no_root_of_its_later_death(log, error, after):
    text = f"{START}{FRAMES.format('x')}{error}\n{after}{HIT}ValueError: of this it died\n"

    assert found(log(text)) == (
        "server_crash",
        "ValueError: of this it died",
        text.count("\n"),
        {"recovered_errors": 1},
    )


def test_a_named_fault_is_not_recovered_from_by_a_rank_that_serves_on(log):
    assert found(log(f"{READY}{TORCH}\n{DECODE}ValueError: later\n"))[1] == TORCH


def test_a_scheduler_s_death_is_not_recovered_from(log):
    text = START + HIT + "ValueError: of rank 0\n" + READY + DECODE

    assert found(log(text)) == ("server_crash", "ValueError: of rank 0", 5, {})


def test_what_was_recovered_from_is_shown_when_there_is_nothing_else(log):
    text = f"{START}{TORCH}\n\n{CHAIN}:\nKeyError: 1\n{READY}"

    assert triage(log(text)) == Triage("server_crash", TORCH, 3, {"recovered_errors": 1}, None)


def test_secrets_stay_out_of_the_root_line(log):
    line = "ValueError: cannot read https://me:pw@host/x with hf_abcdefghijklmnop"

    assert triage(log(line)).root_line == "ValueError: cannot read https://***@host/x with ***"


def test_a_secret_at_the_cut_is_masked_whole(log):
    line = "ValueError: " + "x" * 480 + " hf_abcdefghijklmnop"

    assert triage(log(line)).root_line == "ValueError: " + "x" * 480 + " ***"


# -- how it is read --------------------------------------------------------------------------------


def test_colours_progress_bars_and_odd_bytes_are_read_through(log):
    bar = b"".join(b"\rLoading checkpoint shards: %3d%% done" % n for n in range(0, 101, 10))
    content = (
        b"\xef\xbb\xbf\x1b[31mWARN\x1b[0m na\xefve byte\r\n"
        + bar
        + b"\n\x1b]0;title\x07\x1b[1;31mRuntime\x00Error\x1b[0m: \xff\xfe broken\x1b[K\r\n"
    )
    mark = "\N{REPLACEMENT CHARACTER}"

    assert found(log(content)) == ("server_crash", f"RuntimeError: {mark}{mark} broken", 3, {})


@pytest.mark.parametrize(
    "content",
    [
        b"\x00" * 999,
        b"\r",
        b"\n\r\n\r",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1b[",
        b"\x1b]0;no end",
        b"Traceback (most recent call last):",
        b"  Traceback (most recent call last):\nE",
        b"Traceback (most recent call last):\n" * 999,
        b"During handling of the above exception",
        b"[2026-12-03 09:15:02 TP0]",
        b"x: Traceback (most recent call last):\n  File",
    ],
)
def test_nothing_in_a_log_is_an_error_of_ours(log, content):
    assert triage(log(content)) == NOTHING


def test_a_log_that_may_not_be_read_says_nothing(log, monkeypatch):
    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr(triage_module, "_pieces", refuse)

    assert triage(log("KeyError: 1")) == NOTHING


def test_a_fatal_word_behind_a_progress_bar_is_found(log):
    text = "\rLoading:  50%\rLoading: 100%\rRuntimeError: boom\n"

    assert found(log(text)) == ("server_crash", "RuntimeError: boom", 1, {})


def test_a_byte_order_mark_does_not_hide_the_first_line(log):
    assert found(log("\ufeffRuntimeError: boom"))[1] == "RuntimeError: boom"


def test_a_line_is_cut_so_that_records_stay_small(log):
    assert triage(log("RuntimeError: " + "x" * 1_000_000)).root_line == (
        "RuntimeError: " + "x" * 486
    )


def test_a_line_of_a_megabyte_is_passed_over(log):
    text = "x" * 1_000_000 + " RuntimeError: not at the beginning\nKeyError: 'a'\n"

    assert found(log(text)) == ("server_crash", "KeyError: 'a'", 2, {})


def test_of_a_huge_log_start_and_end_are_read_and_lines_are_counted_right(log, monkeypatch):
    monkeypatch.setattr(triage_module, "_READ_BYTES", 100)
    noise = AUTOTUNE.format(0)[:90] + " fail\n"
    middle = "x" * 99 + "\nRuntimeError: in the middle\n" + "y" * 149 + "\n"

    assert found(log(noise + middle + "z" * 80 + "\nKeyError: last\n")) == (
        "server_crash", "KeyError: last", 6, {"autotune_skipped": 1}
    )  # fmt: skip
    assert found(log("x" * 300 + "\nKeyError: last\n"))[:3] == ("server_crash", "KeyError: last", 2)
    assert triage(log("x" * 999)) == NOTHING
