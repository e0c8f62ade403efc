"""A job's log: records, prints and the traceback of one rule script go to its `log:` file."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from sgmatrix.core.errors import SgmatrixError


@contextlib.contextmanager
def job_log(path: str) -> Iterator[None]:
    """Send stdout and stderr of the block to `path`; a refusal also goes to the terminal.

    A `SgmatrixError` ends the job with exit code 1 and its one line on the real stderr; any
    other exception leaves its traceback in the log and is raised again.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    terminal = sys.stderr
    with (
        Path(path).open("a", buffering=1, encoding="utf-8") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            yield
        except SgmatrixError as refusal:
            print(refusal, file=log)
            print(refusal, file=terminal, flush=True)
            raise SystemExit(1) from None
        except KeyboardInterrupt:
            print("stopped by Ctrl-C", file=log)
            raise SystemExit(130) from None
        except BaseException:
            traceback.print_exc(file=log)
            raise
