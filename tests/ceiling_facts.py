"""The shipped facts, as tests take them."""

from pathlib import Path

from sgmatrix.core.facts.files import hardware_file, model_file, model_shape
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.model import Shape

CONFIG = Path(__file__).parents[1] / "config"


def shape(name: str) -> Shape:
    return model_shape(model_file(CONFIG / "models", name))


def device(name: str) -> Device:
    return hardware_file(CONFIG / "hardware", name).device()


GLM5 = shape("glm-5-nvfp4")
QWEN3 = shape("qwen3-30b-a3b")
RTX = device("rtx-pro-6000-server")
H200 = device("h200-sxm")
