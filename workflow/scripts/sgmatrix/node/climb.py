"""The climb of a starting server to ready, step by step, beside the warden that watches it.

Any of the probes may hang for its whole time, so they run in a thread of their own; the warden
is woken when the climb is over. Standard library only.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sgmatrix.core.redact import redact
from sgmatrix.node import preflight, ready
from sgmatrix.node.proof import ANSWER_S, ask_ranks, stray_answers, why_unproven

_POLL_S = (0.005, 0.1)
"""Between probes: at first, and at the most when the server takes long."""


class Climb:
    """One server on its way to ready."""

    def __init__(
        self,
        cell: Mapping[str, Any],
        *,
        port: int,
        pid: int,
        nonce: str,
        limit_s: float,
        times: dict[str, float],
        done: Callable[[], None],
        status: Path | None = None,
    ) -> None:
        """Prepare the climb.

        Args:
            cell: the cell as `plan.json` holds it.
            port: where the server is to listen.
            pid: its main process.
            nonce: the name that it was given.
            limit_s: for one generation; the warden keeps the deadline of the whole start.
            times: receives the moment of each step.
            done: called at the end of the climb, from its thread.
            status: folder in which a plug-in proves that it runs; None: there is none.
        """
        self.cell = cell
        self.port, self.pid, self.nonce = port, pid, nonce
        self.limit_s = limit_s
        self.times = times
        self.done = done
        self.status = status
        self.outcome: dict[str, Any] = {}
        """`info` when it is ready, or `reason` and `detail`; empty while it climbs."""
        self.last_error = ""

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def seen(self) -> str:
        """Return what stands between the server and ready, as far as it was seen."""
        hint = ""
        if self.cell["flags"].get("skip_server_warmup") is True and "healthy" not in self.times:
            hint = "; skip_server_warmup is set, and some versions of SGLang never get healthy then"
        return (f": {self.last_error}" if self.last_error else "") + hint

    def _run(self) -> None:
        try:
            self.outcome.update(self._climb())
        except ready.NotOurs as error:
            self.outcome.update(reason=error.args[0], detail=error.args[1])
        except Exception as error:  # noqa: BLE001 - a probe that fails is a fault of the server, whatever it is
            self.outcome.update(reason="server_crash", detail=f"readiness probe: {error!r}")
        self.done()

    def _climb(self) -> dict[str, Any]:
        pause = _POLL_S[0]
        owned = False
        while True:
            time.sleep(pause)
            pause = min(pause * 1.1, _POLL_S[1])
            if not owned:
                ours = ready.port_owner(self.port, self.pid)
                if ours is None:
                    continue
                if not ours:
                    raise ready.NotOurs(
                        "port_in_use",
                        f"port {self.port} was taken by another process while the server started"
                        f"{preflight.port_holders(str(self.port))}",
                    )
                owned = True
                self.times["port_open"] = time.time()
            if ready.is_healthy(self.port, timeout_s=5):
                self.times["healthy"] = time.time()
                break
            if self._generates_without_health():
                break
        info = ready.server_info(self.port, timeout_s=30)
        differing = ready.compare_info(
            info, self.nonce, self.cell["flags"], self.cell["engine_version"]
        )
        if differing:
            raise ready.NotOurs("flag_mismatch", json.dumps(redact(differing), sort_keys=True))
        while True:  # a server that is healthy may still refuse for a while
            try:
                ready.generate_one_token(self.port, timeout_s=self.limit_s)
                break
            except OSError as error:
                self.last_error = str(error)
                time.sleep(_POLL_S[1])
        self.times["first_token"] = time.time()
        self._refuse_unproven()
        return {"info": redact(ready.kept_info(info))}

    def _refuse_unproven(self) -> None:
        """Refuse a server whose plug-in does not run as it was asked for in every rank."""
        oea = self.cell["oea"]
        if not oea or self.status is None:
            return
        ranks = self.cell["ranks"]
        limit_s = min(ANSWER_S, self.limit_s / 2) if oea["on"] else 0
        answers = ask_ranks(self.status, ranks, limit_s)
        if oea["on"]:
            why = why_unproven(answers, ranks, oea["settings"], decoded=False)
            if why is not None:
                raise ready.NotOurs("plugin_inactive", why)
            self.times["proven"] = time.time()
        elif stray := stray_answers(self.status):
            raise ready.NotOurs("flag_mismatch", f"oea is off, and {stray[0]} says that it runs")

    def _generates_without_health(self) -> bool:
        """Tell whether a server that skips its own warm-up, and so never turns healthy, serves."""
        if self.cell["flags"].get("skip_server_warmup") is not True:
            return False
        try:
            ready.generate_one_token(self.port, timeout_s=5)
        except OSError as error:
            self.last_error = str(error)
            return False
        return True
