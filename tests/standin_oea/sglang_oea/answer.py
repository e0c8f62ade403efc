"""Answers in the name of each rank of a stand-in server, from the server's own loop."""

import json
import os
from pathlib import Path

POLL_S = 0.02


def begin(server):
    """Answer for every rank while the server runs, unless a fault says otherwise."""
    on = os.environ.get("OEA_ENABLE") == "1"
    folder = os.environ.get("OEA_STATUS_DIR")
    if not folder or not (on or "oea_stray" in server.faults):
        return
    answered = None

    def look():
        nonlocal answered
        server.loop.after(POLL_S, look)
        try:
            nonce = Path(folder, "ask").read_text().strip()
        except FileNotFoundError:
            return
        if nonce and nonce != answered:
            answered = nonce
            for rank in range(server.args["tp_size"] - ("oea_silent" in server.faults)):
                write(Path(folder, f"rank-{os.getpid()}{rank}.json"), facts(server, rank, nonce))

    look()


def facts(server, rank, nonce):
    calls = 0 if "oea_uncalled" in server.faults else server.engine.ticks
    k0 = int(os.environ.get("OEA_K0", "0")) + ("oea_other_k0" in server.faults)
    wrong = "oea_wrong_core" in server.faults
    return {
        "answers": nonce,
        "role": "scheduler",
        "pid": os.getpid(),
        "tp_rank": rank,
        "pp_rank": 0,
        "dp_rank": None,
        "ep_rank": 0,
        "calls": calls,
        "captured_calls": 0,
        "tokens": calls,
        "layers": [0, 1],
        "k0": k0,
        "fill": os.environ.get("OEA_FILL"),
        "core": "eager",
        "check": {"ok": not wrong, "problem": "row 3 has expert 7" if wrong else None},
    }


def write(path, record):
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(record))
    part.replace(path)
