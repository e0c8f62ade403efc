"""What of a machine decides its speed."""

import os

from sgmatrix.node.hardware import hardware_facts, machine


def made(folder, **files):
    for path, text in files.items():
        file = folder / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return folder


def test_sockets_numa_nodes_and_governor_are_read(tmp_path):
    system = made(
        tmp_path,
        cpu__cpu0__topology__physical_package_id="0",
        cpu__cpu1__topology__physical_package_id="1",
        cpu__cpu2__topology__physical_package_id="1",
        cpu__cpu0__cpufreq__scaling_governor="performance",
        node__node0__cpulist="0",
        node__node1__cpulist="1-2",
        node__online="0-1",
    )

    facts = hardware_facts("cpu", system)

    assert (facts["sockets"], facts["numa_nodes"], facts["governor"]) == (2, 2, "performance")
    assert facts["gpus"] == []
    assert facts["kernel"] == os.uname().release


def test_what_cannot_be_read_is_null(tmp_path):
    facts = hardware_facts("cpu", tmp_path)

    assert (facts["sockets"], facts["numa_nodes"], facts["governor"]) == (None, None, None)


def test_gpus_have_their_links_too(tmp_path, monkeypatch):
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        '#!/bin/sh\ncase "$1" in\n'
        '*pcie*) echo "0, 5, 16, 8, 3201 MHz"; echo "1, 5, 16, [N/A], 3201 MHz" ;;\n'
        '*) echo "0, GPU-1, NVIDIA H200, 580.1, 700.00 W, 143771 MiB"\n'
        'echo "1, GPU-2, NVIDIA H200, 580.1, 700.00 W, 143771 MiB" ;;\nesac\n'
    )
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    first, second = hardware_facts("cuda", tmp_path)["gpus"]

    assert (first["name"], first["driver_version"]) == ("NVIDIA H200", "580.1")
    assert (first["pcie.link.gen.max"], first["pcie.link.width.current"]) == ("5", "8")
    assert second["pcie.link.width.current"] is None

    smi.write_text(smi.read_text().replace('echo "0, 5', 'exit 9; echo "0, 5'))
    first, _ = hardware_facts("cuda", tmp_path)["gpus"]
    assert first["name"] == "NVIDIA H200" and "pcie.link.gen.max" not in first


def test_a_machine_is_told_without_its_driver():
    assert machine()["hostname"] == os.uname().nodename
