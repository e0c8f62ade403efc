"""Why a step did not succeed: a closed list, each of one of two kinds.

A *subject* reason says that the thing under test failed. That is a result: the step writes
its record, the later steps of the launch are skipped, the campaign goes on.
An *environment* reason says that the measurement was disturbed or could not begin. That is
no result: the job writes nothing, fails, and the next invocation tries again.

Not here: how a reason is found in a log (`node.triage`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sgmatrix.core.errors import SgmatrixError

Kind = Literal["subject", "environment"]


@dataclass(frozen=True)
class Reason:
    """One reason class."""

    name: str
    kind: Kind
    help: str
    """One line: what it means and where to look."""


def _table(kind: Kind, **helps: str) -> dict[str, Reason]:
    return {name: Reason(name, kind, text) for name, text in helps.items()}


REASONS: dict[str, Reason] = {
    **_table(
        "subject",
        config_rejected="the engine refused its own arguments; read the last line of server.log",
        start_timeout="not ready within deadlines.start_s; raise it or read server.log",
        start_stalled="alive but silent for deadlines.stall_s while starting; a hang, often NCCL",
        oom_weights="no memory for the weights; more GPUs, or a smaller or quantised model",
        oom_kv_init="no memory left for the KV pool; see mem_fraction and the server's own hint",
        oom_runtime="out of memory while serving; lower mem_fraction or the concurrency",
        kernel_unsupported="a kernel does not exist for this GPU or shape; choose another back end",
        nccl_error="communication between the ranks failed; read the first NCCL line",
        server_crash="the server died; the root line and server.log say why",
        wrong_server="the process that answered is not the one that was launched, or its "
        "answers do not count their tokens",
        flag_mismatch="the server runs with another value than was asked for",
        plugin_inactive="the plug-in that was asked for did not prove that it runs",
        client_crash="the client ended without a result or no request succeeded; see client.log",
        client_timeout="the load point did not end within deadlines.point_s",
    ),
    **_table(
        "environment",
        gpu_busy="the GPUs (on the CPU engine: the memory) are taken; free them or choose others",
        port_in_use="another process listens on the port; end it or choose another port",
        leftover_process="a server of an earlier run is still there",
        engine_missing="the engine's interpreter or package is not there; make setup",
        client_setup="the load client cannot run here; make setup",
        drain_failed="the server's processes, port or memory did not go away",
        interrupted="stopped from outside before it ended; the next run repeats the launch",
    ),
}


NOT_NEEDED = "ab_decided"
"""Of a launch that was planned in case its comparison would need it, and was not needed.

No reason class: nothing failed.
"""


def reason(name: str) -> Reason:
    """Return the reason class of that name.

    Raises:
        SgmatrixError: `unknown_reason` when the name is not in the closed list.
    """
    try:
        return REASONS[name]
    except KeyError:
        raise SgmatrixError("unknown_reason", f"{name!r} is not one of {sorted(REASONS)}") from None


def is_environment(name: str) -> bool:
    """Tell whether that reason is of the environment, and so never a result."""
    return reason(name).kind == "environment"
