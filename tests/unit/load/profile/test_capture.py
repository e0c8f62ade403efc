"""When the profiler is started, and what is said where it is not."""

from types import SimpleNamespace

import pytest

from sgmatrix.load.profile import capture
from sgmatrix.load.profile.capture import Capture

PLANNED = {"steps": 10, "running": 4}


class Engine:
    """A server that runs these numbers of requests, one each time it is asked; then the last."""

    def __init__(self, monkeypatch, running, *, refuses=(), writes=True):
        self.running, self.refuses, self.writes = list(running), refuses, writes
        self.told, self.folder = [], None
        self.server = SimpleNamespace(port=1)
        monkeypatch.setattr(capture, "get_json", self.get)
        monkeypatch.setattr(capture, "request", self.request)
        monkeypatch.setattr(capture, "_POLL_S", 0.001)

    def get(self, port, path, *, timeout_s):
        assert path == "/v1/loads"
        now = self.running.pop(0) if len(self.running) > 1 else self.running[0]
        if isinstance(now, OSError):
            raise now
        halves = (now // 2, now - now // 2)  # of two data-parallel ranks
        return {"loads": [{"num_running_reqs": one} for one in halves]}

    def request(self, port, method, path, body, *, timeout_s):
        self.told.append((path, body, len(self.running)))
        if path in self.refuses:
            return 500, b"Internal Server Error"
        if self.writes or path == "/stop_profile":
            (self.folder / "profile-TP-0.trace.json.gz").write_text("x")
        return 200, b""

    def capture(self, folder, *, device="cpu", wave_s=0.01):
        self.folder = folder
        return Capture(self.server, folder, PLANNED, device, wave_s)


def started(engine, folder, **how):
    """Run the capture to its end in this thread, as the wave goes on for ever."""
    one = engine.capture(folder, **how)
    one.start()
    one.join(10)
    assert not one.is_alive()
    return one


def test_it_starts_once_all_requests_are_decoded_over_the_replicas(monkeypatch, tmp_path):
    engine = Engine(monkeypatch, [0, 0, 1, 3, 4])
    one = started(engine, tmp_path, wave_s=0.4)

    assert one.running == 4
    (path, body, left) = engine.told[0]
    assert (path, left) == ("/start_profile", 1)
    assert body == {
        "output_dir": str(tmp_path),
        "num_steps": 10,
        "activities": ["CPU"],
        "with_stack": False,
        "record_shapes": False,
        "profile_id": "profile",
    }
    assert [path.name for path in one.finish()] == ["profile-TP-0.trace.json.gz"]
    assert [path for path, _, _ in engine.told] == ["/start_profile"]  # it ended by itself


def test_a_gpu_has_its_own_activity_beside_the_cpu(monkeypatch, tmp_path):
    engine = Engine(monkeypatch, [4])
    started(engine, tmp_path, device="cuda")

    assert engine.told[0][1]["activities"] == ["CPU", "GPU"]


def test_a_wave_that_is_never_full_is_profiled_in_its_middle(monkeypatch, tmp_path):
    one = started(Engine(monkeypatch, [0, 2]), tmp_path, wave_s=0.1)

    assert one.running == 2


def test_a_wave_that_is_over_too_soon_is_told(monkeypatch, tmp_path):
    engine = Engine(monkeypatch, [0])
    one = engine.capture(tmp_path)
    one.start()

    with pytest.raises(OSError, match="the wave was over before all"):
        one.finish()
    assert engine.told == []


def test_a_profiler_that_saw_fewer_steps_is_stopped(monkeypatch, tmp_path):
    engine = Engine(monkeypatch, [4], writes=False)
    one = started(engine, tmp_path)

    assert [path.name for path in one.finish()] == ["profile-TP-0.trace.json.gz"]
    assert [path for path, _, _ in engine.told] == ["/start_profile", "/stop_profile"]


def test_a_refusal_is_told_with_the_path_and_the_answer(monkeypatch, tmp_path):
    one = started(Engine(monkeypatch, [4], refuses=("/start_profile",)), tmp_path)

    with pytest.raises(OSError, match="/start_profile answered 500: Internal Server Error"):
        one.finish()


def test_an_engine_that_does_not_tell_its_load_is_told(monkeypatch, tmp_path):
    one = started(Engine(monkeypatch, [OSError("/v1/loads answered 404")]), tmp_path)

    with pytest.raises(OSError, match="/v1/loads answered 404"):
        one.finish()
