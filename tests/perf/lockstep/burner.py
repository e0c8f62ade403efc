"""A neighbour on a core: busy for a share of the time, then asleep.

    python burner.py CORE SHARE [PERIOD_MS]

The period is no divisor of the server's tick, so that busy times do not always meet the tokens
at the same place. Ends when its stdin is closed, or its parent is gone.
"""

import os
import select
import sys
import time

PERIOD_MS = 37.0


def main(core: int, share: float, period_ms: float = PERIOD_MS) -> None:
    os.sched_setaffinity(0, {core})
    period_s = period_ms / 1e3
    start_s = time.monotonic()
    print("burning", flush=True)
    while True:
        while time.monotonic() - start_s < share * period_s:
            pass
        rest_s = max(0.0, start_s + period_s - time.monotonic())
        if select.select([sys.stdin], [], [], rest_s)[0]:
            return
        start_s = time.monotonic()


if __name__ == "__main__":
    main(int(sys.argv[1]), *(float(word) for word in sys.argv[2:]))
