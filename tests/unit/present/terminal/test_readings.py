"""What the telemetry of running launches says of now."""

import json

from sgmatrix.present.terminal.readings import GpuReading, Readings, read_readings

GPU = {"power_w": 600.0, "utilization_share": 0.9, "memory_used_mib": 1024.0}


def file(folder, name, **values):
    path = folder / name
    path.write_text(json.dumps(values) + "\n")
    return path


def test_launches_side_by_side_are_told_together(tmp_path):
    one = file(tmp_path, "1", t=100.0, gpus={"10": GPU}, engine={"rss_mib": 10.0})
    two = file(tmp_path, "2", t=101.0, gpus={"2": GPU, "x": GPU}, engine={"rss_mib": 5.0})

    assert read_readings([one, two], 105.0) == Readings(
        (GpuReading(2, 600.0, 0.9, 1024.0), GpuReading(10, 600.0, 0.9, 1024.0)), None, 15.0
    )


def test_an_old_reading_says_nothing_of_now(tmp_path):
    one = file(tmp_path, "1", t=100.0, host={"cpu_busy_share": 0.5})

    assert read_readings([one], 115.0).cpu_busy_share == 0.5
    assert read_readings([one, tmp_path / "absent"], 115.1) == Readings()
