"""The facts files: closed, sourced, found by a GPU's name."""

import shutil
from pathlib import Path

import pytest

from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.files import hardware_file, hardware_for, model_file, model_shape

CONFIG = Path(__file__).parents[3] / "config"


def changed(tmp_path: Path, kind: str, name: str, old: str, new: str) -> Path:
    folder = tmp_path / kind
    folder.mkdir()
    shutil.copy(CONFIG / kind / f"{name}.yaml", folder)
    path = folder / f"{name}.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return folder


@pytest.mark.parametrize("path", sorted((CONFIG / "models").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_model_file_is_read(path: Path) -> None:
    file = model_file(path.parent, path.stem)
    assert model_shape(file).layers > 0
    assert all(len(text) > 10 for text in file.sources.values())


@pytest.mark.parametrize("path", sorted((CONFIG / "hardware").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_hardware_file_is_read(path: Path) -> None:
    device = hardware_file(path.parent, path.stem).device()
    assert device.practical_memory_bytes_s < device.memory_bytes_s
    assert device.link is not None
    assert device.link.practical_bytes_s < device.link.peak_bytes_s


def test_values_in_si_units() -> None:
    device = hardware_file(CONFIG / "hardware", "rtx-pro-6000-server").device()
    assert device.memory_bytes == 95.59 * 2**30
    assert device.memory_bytes_s == 1.792e12
    assert device.practical_memory_bytes_s == pytest.approx(0.85 * 1.792e12)
    assert device.flops_s["fp4"] == 1.8712e15
    assert device.link is not None
    assert device.link.latency_s[8] == 7.5e-6
    assert device.link.allreduce_s[8][0] == (256, 2.3768e-05)


def test_a_fact_without_a_source_is_refused(tmp_path: Path) -> None:
    folder = changed(tmp_path, "hardware", "h200-sxm", '  power_limit_w: "', '  name: "')
    with pytest.raises(SgmatrixError, match="sources: none for power_limit_w"):
        hardware_file(folder, "h200-sxm")


def test_a_format_without_a_rate_is_refused(tmp_path: Path) -> None:
    """Its ceilings would fail at the first model of that format."""
    folder = changed(tmp_path, "hardware", "h200-sxm", "  fp8: 1.978e15\n", "")
    with pytest.raises(SgmatrixError, match="flops_s: none for fp8; a format without a unit"):
        hardware_file(folder, "h200-sxm")


def test_a_source_of_nothing_is_refused(tmp_path: Path) -> None:
    folder = changed(tmp_path, "models", "qwen3-30b-a3b", "sources:\n", "sources:\n  speed: me\n")
    with pytest.raises(SgmatrixError, match="sources: speed is no fact here"):
        model_file(folder, "qwen3-30b-a3b")


def test_an_unknown_key_is_refused_with_the_nearest(tmp_path: Path) -> None:
    folder = changed(tmp_path, "hardware", "h200-sxm", "memory_gib: 140.4", "memory_gb: 140.4")
    with pytest.raises(SgmatrixError) as error:
        hardware_file(folder, "h200-sxm")
    assert "memory_gb: unknown key, did you mean 'memory_gib'?" in str(error.value)


def test_an_unknown_name_tells_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SgmatrixError, match=r"known: .*b200-sxm, h100-sxm, h200-sxm") as error:
        hardware_file(CONFIG / "hardware", "h300")
    assert "node.hardware 'h300'" in str(error.value)


def test_hardware_by_the_drivers_name() -> None:
    found = hardware_for(CONFIG / "hardware", "NVIDIA H200")
    assert found is not None
    assert found.name == "NVIDIA H200 SXM"
    server = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert hardware_for(CONFIG / "hardware", server) is not None
    workstation = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"
    assert hardware_for(CONFIG / "hardware", workstation) is None
    assert hardware_for(CONFIG / "hardware", "NVIDIA GeForce RTX 4090") is None
