"""GPUs through nvidia-smi, its many ways to fail, and what is in use before and after a server.

nvidia-smi is a made-up program here, first on the path.
"""

import os
import pwd
import re
import signal
from pathlib import Path

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.node import facts, gpus, proc
from sgmatrix.node import smi as asking
from sgmatrix.node.gpu_processes import GpuProcess, compute_processes
from sgmatrix.node.gpus import Drained, Gpu, await_drained, check_gpus
from standin.launcher import alive, eventually

NOBODY = 99999999
"""A process number that no kernel gives."""
LOST = (
    "Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.  "
    "Reboot the system to recover this GPU"
)


def row(index, used="0 MiB", *, uuid=None, limit="600.00 W", total="97887 MiB"):
    """A line of nvidia-smi, as its fields are asked for."""
    return (
        f"{index}, {uuid or f'GPU-{index}'}, NVIDIA RTX PRO 6000, 580.95, {limit}, {total}, {used}"
    )


class Smi:
    """A made-up nvidia-smi that answers each question from a file."""

    def __init__(self, folder):
        self.folder = folder
        self.program = folder / "nvidia-smi"
        self.answers([row(0)])

    def script(self, text):
        self.program.write_text(f"#!/bin/sh\n{text}\n")
        self.program.chmod(0o755)

    def answers(self, *polls, processes=(), listing=(), then="exit 0"):
        """Rows of GPUs for one question after the other, the last ones for ever."""
        for number, rows in enumerate(polls, 1):
            (self.folder / f"gpus.{number}").write_text("".join(f"{line}\n" for line in rows))
        (self.folder / "processes").write_text("".join(f"{line}\n" for line in processes))
        (self.folder / "listing").write_text("".join(f"{line}\n" for line in listing))
        self.script(f"""
cd {self.folder}
echo "$@" >> asked
case "$*" in
*query-gpu*)
    number=$(grep -c query-gpu asked)
    test -f gpus.$number || number={len(polls)}
    cat gpus.$number
    {then} ;;
*compute-apps*) cat processes ;;
-L) cat listing ;;
esac""")

    def asked(self):
        return (self.folder / "asked").read_text().splitlines()

    def processes(self):
        """Those that run with this program's folder on their path, so were started by it."""
        found = []
        for entry in filter(str.isdecimal, os.listdir("/proc")):
            try:
                environment = Path(f"/proc/{entry}/environ").read_bytes()
            except OSError:
                continue
            if f"PATH={self.folder}:".encode() in environment:
                found.append(int(entry))
        return found


@pytest.fixture
def smi(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return Smi(folder)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(asking, "_TIMEOUT_S", 0.3)
    monkeypatch.setattr(asking, "_TERM_S", 0.1)


def refusal(check, *arguments, **named):
    with pytest.raises(SgmatrixError) as caught:
        check(*arguments, **named)
    assert caught.value.code == "gpu_busy"
    assert caught.value.fix
    return caught.value


def refused(devices=("gpu-0",), count=1):
    return refusal(check_gpus, devices, count=count, idle_memory_mib=1024)


# --- nvidia-smi itself ---------------------------------------------------------------------------


def test_it_gets_its_arguments_and_its_answer_ends_with_what_it_complained_of(smi):
    smi.script('echo "complaint" >&2; echo "$# $2"')

    assert asking.run_smi(["-q", "a b"]) == "2 a b\ncomplaint\n"


def test_a_node_without_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refusal(asking.run_smi, ["-L"])

    assert error.facts == (
        "cannot see the GPUs: nvidia-smi cannot be run: "
        "[Errno 2] No such file or directory: 'nvidia-smi'"
    )
    assert "put nvidia-smi on PATH" in error.fix
    assert refused().facts == error.facts


MISMATCH = (
    "Failed to initialize NVML: Driver/library version mismatch",
    "NVML library version: 580.95",
)


@pytest.mark.parametrize(
    ("script", "facts", "fix"),
    [
        (
            f"echo '{MISMATCH[0]}'; echo '{MISMATCH[1]}'; exit 18",
            f"ended with 18: {MISMATCH[0]}; {MISMATCH[1]}",
            "reload its modules or reboot",
        ),
        (f"echo '{LOST}' >&2; exit 15", f"ended with 15: {LOST}", "reset the GPU or reboot"),
        ("exit 255", "ended with 255: no output", "make nvidia-smi work on this node"),
        ("kill -SEGV $$", "was ended by signal 11: no output", "make nvidia-smi work"),
    ],
    ids=["mismatch", "lost", "silent", "crashed"],
)
def test_a_failure_is_told_in_its_own_words_with_the_mend(smi, script, facts, fix):
    smi.script(script)
    error = refusal(asking.run_smi, ["-L"])

    assert error.facts == f"cannot see the GPUs: nvidia-smi {facts}"
    assert fix in error.fix


def test_a_long_complaint_is_shortened(smi):
    smi.script("printf '%01000d' 0; exit 1")

    assert refusal(asking.run_smi, ["-L"]).facts.endswith("ended with 1: " + 300 * "0")


@pytest.mark.parametrize(
    "script",
    ["exec sleep 600", "sleep 600", "trap '' TERM; while :; do sleep 600; done"],
    ids=["hangs", "waits for a child", "ignores SIGTERM"],
)
def test_one_that_does_not_answer_is_ended_with_all_that_it_started(smi, impatient, script):
    smi.script(script)
    error = refusal(asking.run_smi, ["-L"])

    assert error.facts == "cannot see the GPUs: nvidia-smi did not answer within 0.3 s"
    assert "GPU reset or a reboot" in error.fix
    eventually(lambda: not smi.processes(), "nothing of it is left")


def test_an_answer_does_not_wait_for_a_child_that_holds_the_output_open(smi):
    smi.script("sleep 600 & echo $!; echo answer")
    pid, answer = asking.run_smi(["-L"]).splitlines()

    assert answer == "answer"
    assert alive(int(pid))
    os.kill(int(pid), signal.SIGKILL)


def test_one_that_not_even_sigkill_ends_is_given_up_and_counts_no_more(smi, impatient, monkeypatch):
    smi.script("exec sleep 600")
    with monkeypatch.context() as world:
        world.setattr(os, "killpg", lambda _group, _signal: None)
        error = refusal(asking.run_smi, ["-L"])
    pid = int(re.search(r"within 0.3 s; pid (\d+) cannot be killed$", error.facts)[1])

    assert alive(pid)
    assert pid not in proc.children(os.getpid())  # so the end of a server does not wait for it

    os.kill(pid, signal.SIGKILL)
    (stuck,) = asking._stuck
    assert stuck.wait() == -signal.SIGKILL
    asking._stuck.clear()
    proc._set_aside.clear()


def test_one_is_ended_too_when_its_caller_is_interrupted(smi, impatient, monkeypatch):
    smi.script("exec sleep 600")
    wait, calls = asking._wait, []

    def interrupted_once(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return wait(*arguments)

    monkeypatch.setattr(asking, "_wait", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        asking.run_smi(["-L"])

    assert smi.processes() == []


# --- which GPUs there are ------------------------------------------------------------------------


def test_gpus_are_read_with_and_without_units_in_the_order_of_their_numbers(smi):
    smi.answers([row(10, "4 MiB"), row(2, "90123", limit="600.00", total="97887"), row(0)])

    assert [str(gpu) for gpu in gpus.read_gpus()] == [
        "GPU 0 (GPU-0)",
        "GPU 2 (GPU-2)",
        "GPU 10 (GPU-10)",
    ]
    assert gpus.read_gpus()[1] == Gpu(
        2, "GPU-2", "NVIDIA RTX PRO 6000", "580.95", 600.0, 97887, 90123
    )
    assert "utilization" not in smi.asked()[0]
    assert smi.asked()[0] == (
        "--query-gpu=index,uuid,name,driver_version,power.limit,memory.total,memory.used "
        "--format=csv,noheader"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[N/A]", None),
        ("N/A", None),
        ("[Not Supported]", None),
        ("[Insufficient Permissions]", None),
        ("ERR!", "ERR!"),
        ("[Unknown Error]", "[Unknown Error]"),
        ("[GPU requires reset]", "[GPU requires reset]"),
    ],
)
def test_a_value_that_is_not_known_is_none_and_the_others_are_kept(smi, text, fault):
    smi.answers([row(0, text, limit="ERR!"), row(1, "12 MiB", total=text)])
    first, second = gpus.read_gpus()

    assert (first.memory_used_mib, first.power_limit_w, first.memory_total_mib) == (
        None,
        None,
        97887,
    )
    assert (second.memory_used_mib, second.memory_total_mib) == (12, None)
    assert (first.fault, second.fault) == (fault, fault)


def test_a_row_of_nothing_but_unknowns_is_a_gpu_without_a_name(smi):
    smi.answers([", ".join(["[Unknown Error]"] * 7), row(0)])
    first, second = gpus.read_gpus()

    assert str(second) == "GPU ? (None)"
    assert (second.name, second.driver_version, second.fault) == (None, None, "[Unknown Error]")
    assert first.index == 0


@pytest.mark.parametrize("then", ["exit 0", "exit 15"])
def test_a_lost_gpu_is_named_and_the_others_are_read(smi, then):
    header = "index, uuid, name, driver_version, power.limit [W], memory.total [MiB], memory.used"
    smi.answers([header, row(0), LOST, "WARNING: infoROM is corrupted", row(2)], then=then)
    found = gpus.inventory()

    assert [gpu.index for gpu in found.gpus] == [0, 2]
    assert found.lost == [LOST]


def test_the_record_of_the_node_keeps_the_texts_and_the_gpus_that_are_left(smi):
    short = [row(0).rpartition(",")[0], LOST, row(2, limit="[N/A]").rpartition(",")[0]]
    smi.answers(short, [LOST], then="exit 15")
    first, second = facts.gpu_facts()

    assert (first["index"], first["memory.total"]) == ("0", "97887 MiB")
    assert (second["index"], second["power.limit"]) == ("2", None)
    assert facts.gpu_facts() is None


# --- who uses them -------------------------------------------------------------------------------


def test_processes_are_told_with_user_memory_and_command(smi, process):
    helper = process("sh", "-c", "cat; :", "--api-key", "x")
    me = pwd.getpwuid(os.getuid()).pw_name
    smi.answers(
        [row(0)],
        processes=[
            f"{helper.pid}, GPU-0, 60000 MiB, /usr/bin/sh",
            f"{NOBODY}, GPU-0, [N/A], a, b",
            f"{NOBODY}, GPU-1, 5 MiB, elsewhere",
            "[N/A], [N/A], 7, [Not Found]",
            "no row at all",
        ],
    )
    found = compute_processes(["GPU-0"])

    assert found == [
        GpuProcess(helper.pid, "GPU-0", 60000, "sh -c cat; : --api-key ***", me),
        GpuProcess(NOBODY, "GPU-0", None, "a, b", "?"),
        GpuProcess(None, None, 7, "?", "?"),
    ]
    assert str(found[1]) == f"pid {NOBODY} of user ?, memory unknown: a, b"
    assert str(found[2]) == "pid ? of user ?, 7 MiB: ?"


def test_a_user_without_a_name_is_a_number(smi, monkeypatch):
    def unknown(_uid):
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    smi.answers([row(0)], processes=[f"{os.getpid()}, GPU-0, 1 MiB, python"])

    assert compute_processes(["GPU-0"])[0].user == str(os.getuid())


def test_a_zombie_does_not_count(smi, process):
    helper = process()
    smi.answers([row(0)], processes=[f"{helper.pid}, GPU-0, 60000 MiB, cat"])
    assert compute_processes(["GPU-0"])

    helper.kill()
    os.waitid(os.P_PID, helper.pid, os.WEXITED | os.WNOWAIT)

    assert compute_processes(["GPU-0"]) == []
    assert check_gpus(["gpu-0"], count=1, idle_memory_mib=0) == {"GPU-0": 0}


def test_a_process_whose_first_thread_alone_has_ended_counts(smi, python):
    helper = python(
        "import ctypes, sys, threading; threading.Thread(target=sys.stdin.read).start(); "
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    smi.answers([row(0)], processes=[f"{helper.pid}, GPU-0, 60000 MiB, python"])
    eventually(lambda: proc.stat_fields(helper.pid)[0] == "Z", "its first thread has ended")

    (found,) = compute_processes(["GPU-0"])

    assert found.pid == helper.pid


# --- before a server -----------------------------------------------------------------------------


def test_the_cpu_engine_asks_for_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert check_gpus(["cpu"], count=0, idle_memory_mib=1024) == {}


@pytest.mark.parametrize(
    "devices",
    [
        ("gpu-0", "gpu-1"),
        ("gpu-GPU-0", "gpu- 1"),
        ("gpu-GPU-1", "gpu-GPU-0"),
    ],
    ids=["numbers", "mixed", "uuids"],
)
def test_gpus_that_are_empty_give_their_baseline(smi, devices):
    smi.answers([row(1, "1024 MiB"), row(0, "4 MiB"), row(2, "9000 MiB")])

    baseline = check_gpus(devices, count=3, idle_memory_mib=1024)

    assert baseline == {"GPU-0": 4, "GPU-1": 1024}


def test_the_beginning_of_a_uuid_is_enough_when_it_is_the_only_one(smi):
    smi.answers([row(0, uuid="GPU-8f12"), row(1, uuid="GPU-8f34"), row(2, uuid="GPU-9a")])

    assert check_gpus(["gpu-GPU-9"], count=3, idle_memory_mib=0) == {"GPU-9a": 0}
    assert refused(["gpu-GPU-8f"]).facts == (
        "GPU GPU-8f may be any of GPU 0 (GPU-8f12), GPU 1 (GPU-8f34); "
        "there are: GPU 0 (GPU-8f12), GPU 1 (GPU-8f34), GPU 2 (GPU-9a)"
    )
    assert refused(["gpu-2", "gpu-GPU-9a"]).facts == "2,GPU-9a names one GPU twice"


@pytest.mark.parametrize("name", ["1", "GPU-7", "GPU-", "MIG-1", "-1", ""])
def test_a_gpu_that_does_not_exist_is_refused_with_those_that_do(smi, name):
    error = refused([f"gpu-{name}"])

    assert error.facts == f"GPU {name} does not exist; there are: GPU 0 (GPU-0)"
    assert error.fix == "correct node.gpus or CUDA_VISIBLE_DEVICES"


def test_seven_of_eight_are_refused_with_the_lost_one(smi):
    smi.answers([*map(row, (0, 1, 2, 3, 4, 6, 7)), LOST])
    error = refused(["gpu-0"], count=8)

    assert error.facts == (
        f"7 of 8 GPUs are there: 0, 1, 2, 3, 4, 6, 7; not there: 5; nvidia-smi: {LOST}"
    )
    assert error.fix == "reset the lost GPU or reboot the node, or lower node.gpus"
    assert check_gpus(["gpu-7"], count=7, idle_memory_mib=0) == {"GPU-7": 0}
    assert refused(["gpu-5"], count=7).facts.endswith(f"GPU 7 (GPU-7); nvidia-smi: {LOST}")


def test_a_node_whose_only_gpu_is_lost_has_none(smi):
    smi.answers([LOST], then="exit 15")

    assert refused().facts == f"0 of 1 GPUs are there: none; not there: 0; nvidia-smi: {LOST}"


@pytest.mark.parametrize("text", ["ERR!", "[Unknown Error]", "[GPU requires reset]"])
def test_a_gpu_that_fails_is_refused_with_its_own_words(smi, text):
    smi.answers([row(0, text), row(1)])

    assert refused().facts == f"GPU 0 (GPU-0) does not work: nvidia-smi says {text}"
    assert check_gpus(["gpu-1"], count=2, idle_memory_mib=0) == {"GPU-1": 0}


def test_strangers_on_the_gpus_are_all_named(smi):
    smi.answers(
        [row(0, "9000 MiB"), row(1, "5000 MiB")],
        processes=[f"{NOBODY}, GPU-0, 8000 MiB, python", f"{NOBODY}, GPU-1, 5000 MiB, julia"],
    )
    error = refused(["gpu-0", "gpu-1"], count=2)

    assert error.facts == (
        f"GPU 0 (GPU-0) is used by pid {NOBODY} of user ?, 8000 MiB: python; "
        f"GPU 1 (GPU-1) is used by pid {NOBODY} of user ?, 5000 MiB: julia"
    )
    assert error.fix == "end those processes, or let the campaign use other GPUs"


def test_strangers_on_other_gpus_are_none_of_our_business(smi):
    smi.answers([row(0), row(1, "9 MiB")], processes=[f"{NOBODY}, GPU-1, 9 MiB, python"])

    assert check_gpus(["gpu-0"], count=2, idle_memory_mib=0) == {"GPU-0": 0}


def test_memory_that_nobody_visible_holds_is_refused_above_the_threshold(smi):
    smi.answers([row(0, "1025 MiB"), row(1, "1024 MiB")])
    error = refused(["gpu-0", "gpu-1"], count=2)

    assert error.facts == (
        "GPU 0 (GPU-0): 1025 MiB in use although no process is to be seen, allowed: 1024"
    )
    assert "node.idle_memory_mib" in error.fix


def test_memory_that_nvidia_smi_does_not_know_is_left_to_the_processes(smi):
    smi.answers([row(0, "[N/A]")])

    assert check_gpus(["gpu-0"], count=1, idle_memory_mib=0) == {"GPU-0": None}


# --- MIG -----------------------------------------------------------------------------------------

LISTING = (
    "GPU 0: NVIDIA RTX PRO 6000 (UUID: GPU-0)",
    "  MIG 2g.48gb     Device  0: (UUID: MIG-aaaa)",
    "  MIG 2g.48gb     Device  1: (UUID: MIG-bbbb)",
    "GPU 1: NVIDIA RTX PRO 6000 (UUID: GPU-1)",
)


def test_a_card_that_is_split_is_refused_unless_its_parts_are_named(smi):
    smi.answers([row(0), row(1)], listing=LISTING)

    assert refused(["gpu-0"]).facts == (
        "GPU 0 (GPU-0) is split into MIG parts that the campaign does not name: MIG-aaaa, MIG-bbbb"
    )
    assert check_gpus(["gpu-MIG-aaaa"], count=3, idle_memory_mib=0) == {"MIG-aaaa": None}
    assert check_gpus(["gpu-1"], count=1, idle_memory_mib=0) == {"GPU-1": 0}
    assert refused(["gpu-MIG-aaaa"], count=4).facts == "3 of 4 GPUs are there: 0, 1"


def test_a_part_with_a_row_of_its_own_has_its_own_memory(smi):
    smi.answers([row(0, "40100 MiB"), row(0, "20010 MiB", uuid="MIG-aaaa"), row(1)])

    assert check_gpus(["gpu-MIG-aaaa"], count=2, idle_memory_mib=20010) == {"MIG-aaaa": 20010}
    assert refused(["gpu-MIG-a"]).facts.startswith("GPU 0 (MIG-aaaa): 20010 MiB in use")
    assert "the campaign does not name: MIG-aaaa" in refused(["gpu-0"]).facts


@pytest.mark.parametrize("place", ["MIG-aaaa", "GPU-0"])
def test_a_stranger_on_a_part_or_somewhere_on_its_card_is_named(smi, place):
    smi.answers([row(0)], listing=LISTING, processes=[f"{NOBODY}, {place}, 8 MiB, python"])

    assert refused(["gpu-MIG-aaaa"]).facts == (
        f"GPU 0 (MIG-aaaa) is used by pid {NOBODY} of user ?, 8 MiB: python"
    )


def test_a_stranger_on_another_part_is_none_of_our_business(smi):
    smi.answers([row(0)], listing=LISTING, processes=[f"{NOBODY}, MIG-bbbb, 8 MiB, python"])

    assert check_gpus(["gpu-MIG-aaaa"], count=1, idle_memory_mib=0) == {"MIG-aaaa": None}


# --- after a server ------------------------------------------------------------------------------


@pytest.fixture
def busy_polls(monkeypatch):
    monkeypatch.setattr(gpus, "_POLL_S", 0.01)


def test_the_cpu_is_drained_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    drained = await_drained({}, deadline_s=60)

    assert drained == Drained(ok=True, used_mib={}, waited_s=0.0)
    assert drained.memory_mib() == {}


def test_memory_that_comes_back_after_two_looks_is_waited_for(smi, busy_polls):
    smi.answers(
        [row(0, "100998 MiB"), row(1, "4 MiB")],
        [row(0, "3000 MiB"), row(1, "[N/A]")],
        [row(0, "256 MiB"), row(1, "4 MiB")],
    )
    drained = await_drained({"GPU-0": 0, "GPU-1": 4}, deadline_s=60)

    assert (drained.ok, drained.detail) == (True, "")
    assert drained.used_mib == {"GPU-0": 256, "GPU-1": 4}
    assert drained.memory_mib() == {"GPU-0": [0, 256], "GPU-1": [4, 4]}
    assert len(smi.asked()) == 3


def test_memory_that_never_comes_back_is_told_with_who_holds_it(smi, busy_polls):
    smi.answers(
        [row(0, "100998 MiB"), row(1, "4 MiB")],
        processes=[f"{NOBODY}, GPU-0, 100900 MiB, sglang::scheduler_TP0"],
    )
    drained = await_drained({"GPU-0": 8, "GPU-1": 4}, tolerance_mib=10, deadline_s=0.05)

    assert drained.ok is False
    assert drained.used_mib == {"GPU-0": 100998, "GPU-1": 4}
    assert re.fullmatch(
        r"GPU memory not back after \d+\.\d s: GPU 0 \(GPU-0\) holds 100998 MiB, 8 before the "
        rf"server; held by pid {NOBODY} of user \?, 100900 MiB: sglang::scheduler_TP0",
        drained.detail,
    )
    assert drained.memory_mib() == {"GPU-0": [8, 100998], "GPU-1": [4, 4]}


def test_a_tolerance_is_above_the_baseline(smi):
    smi.answers([row(0, "1011 MiB")])

    assert await_drained({"GPU-0": 1001}, tolerance_mib=10, deadline_s=0).ok
    assert not await_drained({"GPU-0": 1000}, tolerance_mib=10, deadline_s=0).ok


def test_a_gpu_that_is_lost_or_falls_silent_is_not_drained(smi):
    smi.answers([row(0, "ERR!"), LOST])
    drained = await_drained({"GPU-0": 0, "GPU-1": 0}, deadline_s=0)

    assert drained.used_mib == {"GPU-0": None, "GPU-1": None}
    assert drained.detail.endswith(
        "GPU 0 (GPU-0) does not say what is in use; "
        f"GPU GPU-1 is not there any more; nvidia-smi: {LOST}"
    )


def test_an_nvidia_smi_that_fails_proves_nothing(smi):
    smi.answers([row(0)], then="echo 'NVML: busy'; exit 9")
    drained = await_drained({"GPU-0": 0}, deadline_s=0)

    assert (drained.ok, drained.used_mib) == (False, {"GPU-0": None})
    assert drained.detail.endswith("nvidia-smi ended with 9: " + row(0) + "; NVML: busy")


def test_an_nvidia_smi_that_hangs_holds_no_teardown_up(smi, impatient):
    smi.script("trap '' TERM; while :; do sleep 600; done")
    drained = await_drained({"GPU-0": 0}, deadline_s=0)

    assert not drained.ok
    assert drained.detail.endswith("nvidia-smi did not answer within 0.3 s")
    eventually(lambda: not smi.processes(), "nothing of it is left")


@pytest.mark.parametrize("uuid", ["GPU-0", "MIG-aaaa"])
def test_without_a_known_memory_the_processes_have_to_be_gone(smi, uuid):
    stranger = f"{NOBODY}, GPU-0, [N/A], python"
    smi.answers([row(0, "[N/A]")], listing=LISTING, processes=[stranger])
    held = await_drained({uuid: None}, deadline_s=0)
    smi.answers([row(0, "[N/A]")], listing=LISTING)

    assert held.detail.endswith(
        f": GPU GPU-0 is used by pid {NOBODY} of user ?, memory unknown: python"
    )
    assert await_drained({uuid: None}, deadline_s=0).ok


# --- in a warden ---------------------------------------------------------------------------------

ON_A_GPU = {
    "cell": {"gpus": 1},
    "node": {"gpus": 2, "idle_memory_mib": 1024, "min_free_disk_mib": 1},
}


def test_a_warden_keeps_the_memory_before_and_after_its_server(keep, smi):
    smi.answers([row(0, "4 MiB"), row(1)], [row(0, "90000 MiB"), row(1)], [row(0), row(1)])
    kept = keep(**ON_A_GPU)
    told = kept.ready()
    assert told["devices"] == ["gpu-0"]
    kept.ask(told, ask="stop", why="x")
    closed = kept.closed()

    assert (closed["reason"], closed["detail"]) == (None, "x")
    assert closed["gpu_memory_mib"] == {"GPU-0": [4, 0]}
    assert sum("query-gpu" in line for line in smi.asked()) == 3


def test_a_warden_whose_gpu_does_not_become_empty_says_what_it_holds(keep, smi):
    smi.answers([row(0), row(1)], [row(0, "90000 MiB"), row(1)])
    kept = keep(deadlines={"stop_s": 0.5}, **ON_A_GPU)
    kept.ask(kept.ready(), ask="stop", why="x")
    closed = kept.closed()

    assert (closed["reason"], closed["port_free"]) == ("drain_failed", True)
    assert "GPU 0 (GPU-0) holds 90000 MiB, 0 before the server" in closed["detail"]
    assert closed["gpu_memory_mib"] == {"GPU-0": [0, 90000]}


def test_a_warden_that_is_refused_its_gpus_waits_for_none(keep, smi):
    smi.answers([row(0, "9000 MiB"), row(1)])
    kept = keep(**ON_A_GPU)
    closed = kept.closed()

    assert closed["reason"] == "gpu_busy"
    assert "GPU 0 (GPU-0): 9000 MiB in use" in closed["detail"]
    assert closed["gpu_memory_mib"] == {}
    assert not kept.attempt_dir.exists()


def test_a_warden_demands_no_more_gpus_than_it_was_allotted(keep, smi, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    smi.answers([row(1)])
    kept = keep(**ON_A_GPU)

    assert kept.ready()["devices"] == ["gpu-GPU-1"]
