"""From a server log to a reason class: the first fatal line is the root, noise is counted.

The order of the lines decides: what a dying server prints last is seldom why it died. Lines
that only tell that something died count when no line tells why. What was caught, because the
server became ready or went on serving after it, is no root. Not here: what a line means
(`node.triage_rules`).

Most lines of a log mean nothing. Those that may are found by their needles in the whole text
at once, and only they, and the tracebacks that they open, are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

from sgmatrix.core.redact import redact_text
from sgmatrix.node import triage_rules as rules
from sgmatrix.node.triage_rules import Phase, Rule

_READ_BYTES = 8 * 1024 * 1024
"""Of the start of a log, and of its end; what lies between in a huge one is only counted."""
_LOOK_BYTES = 4096
"""Of one line; what makes it fatal stands at its beginning."""
_ROOT_CHARS = 500
_TRACEBACK_LINES = 500
_CHAIN_LINES = 60
"""From an exception to the sentence that another one came of it."""

_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r")) + b"\x7f"

# `[2026-12-03 09:15:02 TP0] `, and vLLM's `(EngineCore pid=25) ERROR 08-18 02:57:12 [core.py:12] `.
_PREFIX = re.compile(
    r"(?:\([\w.-]+ pid=\d+\) ?)*"
    r"(?P<stamp>\[\d{4}-\d\d-\d\d[ T][\d:.,]+(?: (?P<rank>[^\]]*))?\] ?"
    r"(?:(?P<after>(?:[A-Z]{2,4}\d+ ?)+)\] ?)?)?"
    r"(?:\[rank(?P<torch>\d+)\]: ?)?"
    r"(?:(?:ERROR|WARNING|INFO|CRITICAL)(?: \d\d-\d\d [\d:.]+ \[[^\]]*:\d+\] ?|:\s+))?"
)
# They repeat what somebody else wrote: settings, prompts.
_QUOTING = re.compile(r"(server_args=|ServerArgs\(|Receive: |Finish: )")
_TRACEBACK = "Traceback (most recent call last):"
_CHAINS = ("During handling of the above exception", "The above exception was the direct cause")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt)|Exception|OutOfResources)"
    r"(?:: .*|:)?$"
)
_LAST_OF_TRACEBACK = re.compile(r"[A-Za-z_][\w.]*(?:: .*|:)?$")
"""Behind its frames an exception may have any name."""
_STOPPED_BY_HAND = re.compile(r"KeyboardInterrupt\b|SystemExit\b")
# The first number that stands where a port does; behind it come pids and others' command lines.
_PORT = re.compile(r"(?:\b\w*port\w*(?: at)?[ :=]+|', |:)(\d{2,5})\b", re.IGNORECASE)

_NEEDLES: tuple[bytes, ...] = tuple(
    sorted(
        {
            needle.encode()
            for rule in (*rules.HARMLESS_LINES, *rules.FATAL_LINES, *rules.DEATHS)
            for needle in rule.needles
        }
        | {text.encode() for text, _ in rules.MILESTONES}
        | {text.encode() for text in (_TRACEBACK, *_CHAINS)}
    )
)
_EXCEPTION_NEEDLES = (b"Error", b"Exception", b"OutOfResources")


@dataclass(frozen=True)
class Triage:
    """What a log says."""

    reason: str | None
    """Reason class; None when no line is fatal."""
    root_line: str | None
    """Without secrets, and cut."""
    line_number: int | None
    """Counted from 1, as an editor does."""
    harmless: dict[str, int]
    advice: str | None = None
    """One line: what to try; None when nothing is known to help."""


class Line(NamedTuple):
    """A line of a log, taken apart."""

    number: int
    text: str
    body: str
    """What stands behind the time stamp and the rank."""
    rank: str | None
    stamped: bool
    """A new entry of SGLang's own log, so never the continuation of a traceback."""


@dataclass
class _Block:
    """A traceback that is being read, or has been."""

    harmless: bool
    deadly: bool
    rank: str | None
    begin: int
    phase: Phase | None = None
    chained: bool = False


class _Hit(NamedTuple):
    number: int
    text: str
    reason: str
    advice: str | None
    tier: int
    deadly: bool
    """Said by a line that proves a death: nothing that follows makes it harmless."""
    chained: bool


def cleaned(data: bytes) -> bytes:
    """Take escape codes and control characters out; the lines stay where they are."""
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    return data.removeprefix(b"\xef\xbb\xbf").translate(None, _CONTROLS)


def taken_apart(raw: bytes, number: int = 0) -> Line:
    """Return a line as text, and what is said in it."""
    text = raw[:_LOOK_BYTES].decode("utf-8", errors="replace").rstrip()
    prefix = _PREFIX.match(text)
    assert prefix is not None  # every part of it is optional
    rank = prefix["after"] or prefix["rank"] or (prefix["torch"] and f"TP{prefix['torch']}")
    rank = rank.strip() if rank else None
    return Line(number, text, text[prefix.end() :], rank, prefix["stamp"] is not None)


def for_record(text: str) -> str:
    """Return a line as a record may hold it: without secrets, and cut."""
    return redact_text(text.strip())[:_ROOT_CHARS].rstrip()


def by_needle(among: Iterable[Rule]) -> tuple[tuple[str, Rule], ...]:
    """Return each rule under each of its needles: to look for a text is cheaper than to match."""
    return tuple((needle, rule) for rule in among for needle in rule.needles)


def first_of(among: Iterable[tuple[str, Rule]], body: str) -> Rule | None:
    """Return the first of the rules that the line is an instance of."""
    for needle, rule in among:
        if needle in body and rule.pattern.search(body):
            return rule
    return None


_HARMLESS = by_needle(rules.HARMLESS_LINES)
_FATAL = by_needle(rules.FATAL_LINES)
DEATHS = by_needle(rules.DEATHS)


def quotes(body: str) -> bool:
    """Tell whether a line is code, a frame, or repeats what a user wrote; it proves nothing."""
    return body[:1] in " \t|" or _QUOTING.match(body) is not None


def line_starts(text: bytes, needles: Iterable[bytes]) -> set[int]:
    """Return where the lines begin that hold one of the needles."""
    starts = set()
    for needle in needles:
        at = text.find(needle)
        while at >= 0:
            starts.add(text.rfind(b"\n", 0, at) + 1)
            end = text.find(b"\n", at)
            at = text.find(needle, end) if end >= 0 else -1
    return starts


@lru_cache(maxsize=4096)
def _named(body: str, phase: Phase) -> Rule | None:
    """Return the rule for an exception; the same one often comes again and again."""
    return next((rule for rule in rules.EXCEPTIONS if rule.means(body, phase)), None)


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number of the first line, and the bytes, of what is read of a log."""
    with path.open("rb") as file:
        head = file.read(2 * _READ_BYTES + 1)
        if len(head) <= 2 * _READ_BYTES:
            yield 1, head
            return
        # whole lines, unless one is longer than all that is read
        cut = head.rfind(b"\n", 0, _READ_BYTES) + 1 or _READ_BYTES
        yield 1, head[:cut]
        number = 1 + head.count(b"\n", 0, cut)
        place = file.seek(cut)
        tail = file.seek(0, 2) - _READ_BYTES
        file.seek(place)
        while place < tail and (chunk := file.read(min(1 << 20, tail - place))):
            number += chunk.count(b"\n")
            place += len(chunk)
        rest = file.read(2 * _READ_BYTES)
        skip = rest.find(b"\n") + 1
        yield number + (skip > 0), rest[skip:]


class _Reading:
    """What has been understood of a log so far."""

    def __init__(self, http_port: int | None) -> None:
        self.http_port = http_port
        self.harmless: dict[str, int] = {}
        self.hits: list[_Hit] = []
        self.ready = self.served = 0
        """Number of the last line that proves that it was ready, that it served."""
        self._phases: dict[str | None, Phase] = {}
        self._block: _Block | None = None
        self._ended: tuple[int, _Block] | None = None
        self._head: _Block | None = None

    def read(self, first_number: int, data: bytes) -> None:
        data = cleaned(data)
        text = data.replace(b"\r", b"\n")  # a step of a progress bar is a line that has no number
        number, counted, after = first_number, 0, 0
        self._leave()
        named, errors = line_starts(text, _NEEDLES), line_starts(text, _EXCEPTION_NEEDLES)
        for start in sorted(named | errors):
            if start < after:
                continue
            after = start
            while after < len(text):
                number += data.count(b"\n", counted, after)
                counted = after
                end = text.find(b"\n", after)
                end = len(text) if end < 0 else end
                raw = text[after : min(end, after + _LOOK_BYTES)]
                if self._block is not None and raw[:2] == b"  ":
                    self._frame(self._block, raw.decode(errors="replace"))
                else:
                    self._look(taken_apart(raw, number), after in named, after in errors)
                after = end + 1
                if self._block is None and self._head is None:
                    break
        self.ready = self._last(data, [rules.READY], first_number) or self.ready
        self.served = self._last(data, rules.SERVING, first_number) or self.served

    def _leave(self) -> None:
        """Forget what is open: a new piece of the log is no continuation."""
        self._block = self._head = None

    @staticmethod
    def _last(data: bytes, texts: Iterable[str], first_number: int) -> int:
        at = max(data.rfind(text.encode()) for text in texts)
        return first_number + data.count(b"\n", 0, at) if at >= 0 else 0

    # -- one line ------------------------------------------------------------------------------

    def _look(self, line: Line, named: bool, error: bool) -> None:
        """Read a line; it has a needle of a rule, one of an exception, or follows such a line."""
        if not line.body:
            return
        block = self._block
        if block is not None:
            if line.number - block.begin > _TRACEBACK_LINES:
                self._block = None
            elif not line.stamped and self._continues(block, line):
                return
        head, self._head = self._head, None
        if _TRACEBACK in line.body:
            self._opens(line, head)
            return
        if quotes(line.body) or (named and self._entry(line)):
            return
        if error and _EXCEPTION.match(line.body):
            block = _Block(False, False, line.rank, line.number)
            self._exception(line, block)
            self._ended = (line.number, block)

    def _continues(self, block: _Block, line: Line) -> bool:
        """Read a line as one of the traceback; tell whether it is."""
        if line.body[0] in " \t|+":
            self._frame(block, line.body)
            return True
        if line.body.startswith((_TRACEBACK, *_CHAINS)):
            return True
        if not _LAST_OF_TRACEBACK.match(line.body):
            return False  # another process speaks between
        self._exception(line, block)
        self._block, self._ended = None, (line.number, block)
        return True

    @staticmethod
    def _frame(block: _Block, text: str) -> None:
        frame = rules.FRAME.search(text) if ", in " in text else None
        if frame is not None:
            block.phase = cast("Phase", frame.lastgroup)

    def _opens(self, line: Line, head: _Block | None) -> None:
        """Begin a traceback, that of the line before or of this one."""
        body = line.body
        if body.lstrip(" +").startswith((_TRACEBACK, "Exception Group " + _TRACEBACK)):
            if quotes(body) and head is None:
                return  # printed by somebody else, and indented
        elif quotes(body):
            return
        else:
            self._entry(line)
            head, self._head = self._head, None
        self._block = head or _Block(False, False, line.rank, line.number)

    def _entry(self, line: Line) -> bool:
        """Read a line that is no part of a traceback; tell whether a rule knows it."""
        body = line.body
        if body.startswith(_CHAINS):
            if self._ended and line.number - self._ended[0] <= _CHAIN_LINES:
                block = self._ended[1]
                self._block = _Block(
                    block.harmless, block.deadly, block.rank, line.number, block.phase, True
                )
            return True
        noise = first_of(_HARMLESS, body)
        if noise is not None:
            assert noise.counter is not None
            self.harmless[noise.counter] = self.harmless.get(noise.counter, 0) + 1
            self._head = _Block(True, False, line.rank, line.number)
            return True
        for text, phase in rules.MILESTONES:
            if body.startswith(text):
                self._phases[line.rank] = phase
                return True
        death = first_of(DEATHS, body)
        if death:
            self._head = _Block(False, True, line.rank, line.number)
        found = first_of(_FATAL, body)
        if found is None and death is None:
            return False
        self._hit(line, found or death, deadly=death is not None)
        return True

    def _exception(self, line: Line, block: _Block) -> None:
        if block.harmless or _STOPPED_BY_HAND.match(line.body):
            return
        rank = block.rank or line.rank
        phase = block.phase or self._phases.get(rank) or self._farthest()
        self._hit(line, _named(line.body, phase), deadly=block.deadly, chained=block.chained)

    def _farthest(self) -> Phase:
        """Tell how far the first of the ranks has come, for a line that names none."""
        order: tuple[Phase, ...] = ("weights", "kv", "runtime")
        return max(self._phases.values(), key=order.index, default="weights")

    def _hit(self, line: Line, rule: Rule | None, *, deadly: bool, chained: bool = False) -> None:
        reason, advice = (rule.reason, rule.advice) if rule else ("server_crash", None)
        if reason in ("port_in_use", "leftover_process"):
            reason, advice = self._whose_port(line.body, reason, advice)
        tier = rule.tier if rule else rules.CAUSE
        self.hits.append(_Hit(line.number, line.text, reason, advice, tier, deadly, chained))

    def _whose_port(self, body: str, reason: str, advice: str | None) -> tuple[str, str | None]:
        """Tell the HTTP port from an internal one by its number, where both are known."""
        named = _PORT.search(body)
        if self.http_port is None or named is None:
            return reason, advice
        if self.http_port == int(named[1]):
            return "port_in_use", rules.TAKEN_PORT
        return "leftover_process", rules.HELD_PORT

    # -- what it comes to ----------------------------------------------------------------------

    def _recovered(self, hit: _Hit) -> bool:
        """Tell whether the server went on after it."""
        if hit.deadly:
            return False
        passed = max(self.ready, self.served) if hit.reason == "server_crash" else self.ready
        return hit.number < passed

    def verdict(self) -> Triage:
        recovered = [hit for hit in self.hits if self._recovered(hit)]
        fatal = [hit for hit in self.hits if not self._recovered(hit)]
        root = min(fatal, key=lambda hit: (hit.tier, hit.number), default=None)
        harmless = dict(self.harmless)
        if recovered:
            harmless["recovered_errors"] = sum(not hit.chained for hit in recovered)
        if root is None and not recovered:
            return Triage(None, None, None, harmless)
        if root is None:
            # It went on after it: the line is all there is to see, its class would say too much.
            root = min(recovered, key=lambda hit: (hit.tier, hit.number))
            return self._answer(root, "server_crash", None, harmless)
        if root.reason == "config_rejected":
            root = [hit for hit in fatal if hit.reason == root.reason][-1]
        return self._answer(root, root.reason, root.advice, harmless)

    @staticmethod
    def _answer(root: _Hit, reason: str, advice: str | None, harmless: dict[str, int]) -> Triage:
        return Triage(reason, for_record(root.text), root.number, harmless, advice)


def triage(path: Path, http_port: int | None = None) -> Triage:
    """Find the root of a server's end in its log. A log that cannot be read says nothing.

    With the number of the HTTP port, which the lease reserved, a held internal port can be told
    from it by the number, too.
    """
    reading = _Reading(http_port)
    try:
        if path.is_file():
            for number, data in _pieces(path):
                reading.read(number, data)
    except OSError:
        pass  # what was read of it counts
    return reading.verdict()
