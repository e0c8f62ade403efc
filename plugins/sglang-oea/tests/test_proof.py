"""A rank answers a nonce, once, with a whole file, and never during a capture."""

import json
import os
import threading

import pytest

from sglang_oea.capture import CaptureGuard
from sglang_oea.proof import ASK, Responder


@pytest.fixture
def responder(tmp_path):
    one = Responder(tmp_path, lambda: {"calls": 7}, CaptureGuard())
    yield one
    one.stopped.set()


def test_a_nonce_is_answered_with_the_facts(responder):
    (responder.folder / ASK).write_text("abc\n")

    assert responder.answer()
    record = json.loads(responder.file.read_text())
    assert record == {"answers": "abc", "role": "scheduler", "pid": os.getpid(), "calls": 7}
    assert responder.file.name == f"rank-{os.getpid()}.json"
    assert sorted(file.name for file in responder.folder.iterdir()) == [ASK, responder.file.name]


def test_the_same_nonce_is_answered_once_and_a_new_one_again(responder):
    (responder.folder / ASK).write_text("abc")
    assert [responder.answer(), responder.answer()] == [True, False]

    (responder.folder / ASK).write_text("def")
    assert responder.answer()
    assert json.loads(responder.file.read_text())["answers"] == "def"


@pytest.mark.parametrize("ask", [None, "", "\n"])
def test_without_a_question_there_is_no_answer(responder, ask):
    if ask is not None:
        (responder.folder / ASK).write_text(ask)

    assert not responder.answer()
    assert not responder.file.exists()


def test_during_a_capture_the_device_is_not_read(responder):
    (responder.folder / ASK).write_text("abc")
    guard = responder.guard
    seen = []

    guard.around_begin(lambda: seen.append(responder.answer()))
    seen.append(responder.answer())
    guard.around_end(lambda: seen.append(responder.answer()))
    seen.append(responder.answer())

    assert seen == [False, False, False, True]


def test_a_capture_that_fails_lets_the_reader_in_again(responder):
    guard = responder.guard
    with pytest.raises(ZeroDivisionError):
        guard.around_begin(lambda: 1 / 0)
    with guard.outside_capture() as free:
        assert free

    guard.around_begin(lambda: None)
    with pytest.raises(ZeroDivisionError):
        guard.around_end(lambda: 1 / 0)
    with guard.outside_capture() as free:
        assert free


def test_a_capture_begins_only_when_the_reader_is_done(responder):
    guard = responder.guard
    order, reading = [], threading.Event()

    def capture():
        reading.wait()
        guard.around_begin(lambda: order.append("capture"))
        guard.around_end(lambda: None)

    thread = threading.Thread(target=capture)
    thread.start()
    with guard.outside_capture():
        reading.set()
        order.append("read")
    thread.join()

    assert order == ["read", "capture"]


def test_the_thread_answers_by_itself_and_makes_the_folder(tmp_path):
    written = threading.Event()
    one = Responder(tmp_path / "new" / "folder", lambda: written.set() or {}, CaptureGuard())

    one.start()
    (one.folder / ASK).write_text("abc")

    assert written.wait(30)
    one.stopped.set()


def test_an_error_is_told_and_the_next_question_answered(tmp_path, capsys):
    answers = iter([ValueError("no device"), {"calls": 1}])
    done = threading.Event()

    def facts():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        done.set()
        return answer

    one = Responder(tmp_path, facts, CaptureGuard())
    (tmp_path / ASK).write_text("abc")
    one.start()

    assert done.wait(30)
    one.stopped.set()
    assert "sglang-oea: no proof written: ValueError('no device')" in capsys.readouterr().err
