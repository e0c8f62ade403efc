"""The facts of a campaign's model and hardware, as `plan.json` keeps them for all later jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmatrix.analysis.ceiling.device import device_of, hardware_of
from sgmatrix.core.errors import SgmatrixError
from sgmatrix.core.facts.files import HARDWARE, MODELS, HardwareFile, folder_config, model_file
from sgmatrix.core.facts.hardware import Device
from sgmatrix.core.facts.hf_config import shape_from_config
from sgmatrix.core.facts.model import Shape
from sgmatrix.plan.model import ModelFacts
from sgmatrix.plan.recipes import RECIPES


def campaign_facts(
    model: ModelFacts,
    *,
    device: str,
    hardware: str | None,
    gpu_names: Sequence[str],
    project: Path,
) -> dict[str, Any]:
    """Return what is known of model and hardware, and why not where it is not.

    Args:
        model: of the campaign.
        device: `cuda` or `cpu`, of the engine.
        hardware: file of config/hardware that the campaign names.
        gpu_names: of the node, as its driver gives them.
        project: the folder of `config`.

    Raises:
        SgmatrixError: `facts_missing` where a file that the campaign names is wrong.
    """
    facts: dict[str, Any] = {"device": device}
    try:
        facts["model"] = _model(model, project)
        shape_in(facts)
    except SgmatrixError as refusal:
        if model.facts is not None:
            raise
        facts["model"], facts["why_no_model"] = None, str(refusal)
    try:
        found = hardware_of(project / HARDWARE, device, hardware, gpu_names)
        facts["hardware"] = None if found is None else json.loads(found.model_dump_json())
    except SgmatrixError as refusal:
        if hardware is not None:
            raise
        facts["hardware"], facts["why_no_hardware"] = None, str(refusal)
    return facts


def _model(model: ModelFacts, project: Path) -> dict[str, Any]:
    if model.facts is not None:
        file = model_file(project / MODELS, model.facts)
        return {
            "name": file.name,
            "config": file.config,
            "quantisation": None,
            "precision": file.precision,
            "source": f"config/models/{model.facts}.yaml",
        }
    if model.recipe is not None:
        config: Mapping[str, Any] = RECIPES[model.recipe].config()
        quantisation = None
    else:
        config, quantisation = folder_config(Path(model.path))
    return {
        "name": model.name,
        "config": dict(config),
        "quantisation": quantisation,
        "precision": {},
        "source": "config.json of the model",
    }


def shape_in(facts: Mapping[str, Any]) -> Shape:
    """Return the model's shape.

    Raises:
        SgmatrixError: `facts_missing`, with why there is none.
    """
    known = facts.get("model")
    if known is None:
        why = str(facts.get("why_no_model", "the plan holds no facts of the model"))
        raise SgmatrixError("facts_missing", why.removeprefix("facts_missing: "))
    return shape_from_config(
        known["config"], known["name"], known["quantisation"], known["precision"]
    )


def device_in(facts: Mapping[str, Any], probe: Mapping[str, Any]) -> Device:
    """Return the device that ceilings are computed for.

    Raises:
        SgmatrixError: `facts_missing`, with what is missing.
    """
    given = facts.get("hardware")
    if given is None and facts.get("device") != "cpu":
        why = str(facts.get("why_no_hardware", "the plan holds no facts of the hardware"))
        raise SgmatrixError("facts_missing", why.removeprefix("facts_missing: "))
    file = None if given is None else HardwareFile.model_validate(given, strict=False)
    return device_of(file, probe)
