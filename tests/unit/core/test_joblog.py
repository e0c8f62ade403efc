"""What a job says goes to its log; what the user must read goes to the terminal as well."""

import subprocess
import sys

import pytest

from sgmatrix.core.errors import Refusal, SgmatrixError
from sgmatrix.core.joblog import job_log


def test_a_refusal_is_one_line_on_the_terminal_and_exit_code_1(tmp_path, capsys):
    log = tmp_path / "logs" / "launch.log"

    with pytest.raises(SystemExit) as ended, job_log(str(log)):
        raise SgmatrixError("gpu_busy", "GPU 3 is used by pid 41", fix="free it")

    assert ended.value.code == 1
    assert capsys.readouterr().err == "gpu_busy: GPU 3 is used by pid 41; fix: free it\n"
    assert log.read_text() == "gpu_busy: GPU 3 is used by pid 41; fix: free it\n"


def test_a_refusal_of_many_problems_is_one_line_for_each(tmp_path, capsys):
    with pytest.raises(SystemExit), job_log(str(tmp_path / "log")):
        raise Refusal("config_rejected", ["a", "b"])

    assert capsys.readouterr().err == "config_rejected: a\nconfig_rejected: b\n"


def test_any_other_exception_is_raised_again_with_its_traceback_in_the_log(tmp_path, capsys):
    with pytest.raises(ZeroDivisionError), job_log(str(tmp_path / "log")):
        _ = 1 / 0

    text = (tmp_path / "log").read_text()
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("ZeroDivisionError: division by zero\n")
    assert "_ = 1 / 0" in text
    assert capsys.readouterr().err == ""


def test_prints_and_errors_of_the_block_go_to_the_log_and_later_ones_do_not(tmp_path, capsys):
    with job_log(str(tmp_path / "log")):
        print("to stdout")
        print("to stderr", file=sys.stderr)
    print("afterwards")

    assert (tmp_path / "log").read_text() == "to stdout\nto stderr\n"
    assert capsys.readouterr().out == "afterwards\n"


def test_a_second_try_of_the_job_adds_to_the_log(tmp_path):
    for word in ("first", "second"):
        with job_log(str(tmp_path / "log")):
            print(word)

    assert (tmp_path / "log").read_text() == "first\nsecond\n"


def test_the_interpreter_ends_with_exit_code_1_and_no_traceback(tmp_path):
    code = (
        "import sys\n"
        "from sgmatrix.core.errors import SgmatrixError\n"
        "from sgmatrix.core.joblog import job_log\n"
        "with job_log(sys.argv[1]):\n"
        "    raise SgmatrixError('engine_missing', 'no sglang')\n"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(tmp_path / "log")],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "engine_missing: no sglang\n"
