"""Why a server ended: the warden's word, the log's, and the disk's."""

import pytest

from sgmatrix.node.verdict import DIED, judge

TIMES = {"started": 100.0, "ready": 101.0, "stopping": 105.5}
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
NOISE = (
    "[Autotuner]: Skipping tactic 1, due to failure while profiling: Failed to initialize cutlass"
)


@pytest.fixture
def verdict(tmp_path):
    """Judge an end with that log."""

    def verdict(reason, log="", *, times=None, disk=1, detail="seen"):
        (tmp_path / "server.log").write_text(log)
        return judge(
            reason,
            detail,
            attempt_dir=tmp_path,
            port=31000,
            exit_code=-9,
            times=times or TIMES,
            min_free_disk_mib=disk,
        )

    return verdict


def test_one_that_was_asked_to_end_has_no_reason_whatever_its_log_says(verdict):
    found = verdict(None, OOM)

    assert (found.reason, found.detail) == (None, "seen")
    assert found.log["root_line"] is None


def test_one_that_died_is_classed_by_its_log_with_code_and_phase(verdict):
    found = verdict(DIED, f"{NOISE}\n{OOM}\n")

    assert found.reason == "oom_weights"
    assert found.detail == "the engine exited with code -9 after 5.5 s, while it served"
    assert (found.log["root_line"], found.log["root_line_number"]) == (OOM, 2)
    assert found.log["harmless"] == {"autotune_skipped": 1}
    assert found.log["advice"]


def test_one_that_died_without_a_word_crashed(verdict):
    found = verdict(DIED, times={"started": 100.0, "stopping": 100.5})

    assert found.reason == "server_crash"
    assert found.detail.endswith("after 0.5 s, before it was ready")


def test_a_full_disk_is_the_cause_and_no_result(verdict):
    found = verdict(DIED, OOM, disk=2**40)

    assert found.reason == "interrupted"
    assert "MiB free on the disk of " in found.detail
    assert found.detail.endswith(
        "; then the engine exited with code -9 after 5.5 s, while it served"
    )
    assert found.log["root_line"] is None


def test_a_disk_that_was_full_for_a_moment_is_told_by_the_log(verdict):
    found = verdict(DIED, "OSError: [Errno 28] No space left on device\n")

    assert found.reason == "interrupted"
    assert found.log["root_line"] == "OSError: [Errno 28] No space left on device"


def test_a_disturbance_is_not_explained_by_errors_that_the_server_got_over(verdict):
    found = verdict("interrupted", OOM)

    assert (found.reason, found.log["root_line"]) == ("interrupted", None)
