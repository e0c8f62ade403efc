"""The campaign's JSON schema and its reference page, both made from the models.

    python -m sgmatrix.plan.reference       (with workflow/scripts on PYTHONPATH; `make docs`)

A test keeps the files in step with the models.
"""

from __future__ import annotations

import json
import types
import typing
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sgmatrix.core.files import write_text
from sgmatrix.plan.campaign import Campaign

SCHEMA = Path("workflow/schemas/campaign.schema.json")
REFERENCE = Path("config/README.md")

_HEAD = """# Campaign files

One YAML file is one campaign; `config.yaml` is the default one. Every key is listed here; an unknown key
is an error. YAML is read as people mean it: `NO`, `on` and `yes` are text; `010` and `1_000`,
which programs read as different numbers, and a key that stands twice are refused. Editors that know JSON schema can use `workflow/schemas/campaign.schema.json`.

This page and the schema are made from the models by `make docs`.

## Axes

| axis | values | server flag |
|---|---|---|
| `parallelism` | bundles: `tp8`, `tp4pp2`, `tp8ep8`, `tp2dp2`; `dp8ep8` is DP attention | `--tp-size`, `--pp-size`, `--dp-size`, `--ep-size`, `--enable-dp-attention` |
| `decode_steps` | 1, 2, … | `--num-continuous-decode-steps` |
| `mem_fraction` | between 0 and 1 | `--mem-fraction-static` |
| `engine` | a key of `engines` | |
| `oea` | `off`, or `{k0: 4}` with `k_max`, `p`, `max_rank`, `fill` | none: the plug-in sglang-oea is switched by its environment |
| `environment` | a key of `environments`, several as `a+b`, `null` for none | |
| `patches` | a key of `patches`, several as `a+b`, `null` for none | |
| a name in capitals, such as `NCCL_ALGO` | text of that environment variable; `null` leaves it out | |
| any other name | as the flag wants; `true` is a bare flag, `null` and `false` leave it out, a list is several arguments, a mapping is JSON | `--` and the name, `_` written as `-` |

`design: full` measures every combination; `one_at_a_time` starts from the first value of each axis, the base,
and changes one axis at a time. The first cell is what the others are compared with. `exclude` takes cells
out, `include` adds some, `overrides` changes launches, load points, deadlines, flags or environment of those
that meet a condition.

```yaml
axes:
  parallelism: [tp8, tp8ep8, dp8ep8]
  mem_fraction: [0.85, 0.90]
  max_running_requests: [null, 2048]
  NCCL_P2P_DISABLE: [null, "1"]
  environment: [null, few-channels]
  patches: [null, autotune-cutlass]
environments:
  few-channels: {NCCL_MAX_NCHANNELS: "4", NCCL_MIN_NCHANNELS: "1"}
patches:
  autotune-cutlass:
    about: flashinfer_cutlass is left out of the autotuner's list
    edits:
      - file: sglang/srt/model_executor/model_runner.py
        find: |
          "flashinfer_trtllm",
        replace: |
          "flashinfer_trtllm", "flashinfer_cutlass",
exclude:
  - {parallelism: [tp8ep8, dp8ep8], mem_fraction: 0.90}
overrides:
  - where: {parallelism: tp8ep8}
    deadlines: {start_s: 3600}
    load: {concurrency: [1, 64, 1024]}
    launches: 3
```

A patch is made to a copy of the engine's package below `~/.cache/sgmatrix/patched`, about 220 MB for SGLang
0.5.23, and never to the installation; its hash is part of the cell's key, and its difference lies beside the
record of each launch as `patches.diff`.

## Keys
"""


# Of keys whose default shows nothing; the others show their default.
_EXAMPLES = {
    "references": "[glm5-nvfp4-8xrtxpro6000]",
    "node.hardware": "h200-sxm",
    "model.facts": "glm-5-nvfp4",
    "campaign": "glm5-tp8-or-ep8",
    "engine": "sglang-cuda",
    "engines.<name>.python": "~/venvs/sglang/bin/python",
    "engines.<name>.described_by": ".engines/sglang-cpu/bin/python",
    "engines.<name>.env": '{HF_HUB_OFFLINE: "1"}',
    "engines.<name>.flags": "{kv_cache_dtype: fp8_e4m3}",
    "model.path": "/models/GLM-5-NVFP4",
    "model.recipe": "tiny-qwen3-moe",
    "axes": "{parallelism: [tp8, tp8ep8]}",
    "include": "[{parallelism: tp4pp2}]",
    "exclude": "[{parallelism: tp8ep8, mem_fraction: [0.9, 0.92]}]",
    "overrides.where": "{parallelism: tp8ep8}",
    "overrides.launches": "3",
    "overrides.load.concurrency": "[1, 64]",
    "overrides.load.input_len": "1024",
    "overrides.load.output_len": "256",
    "overrides.load.requests": "{min: 16}",
    "unset": "[MALLOC_ARENA_MAX]",
    "overrides.deadlines": "{start_s: 3600}",
    **{
        f"overrides.deadlines.{name}_s": "3600"
        for name in ("start", "stall", "point", "warmup", "stop", "idle")
    },
    "overrides.flags": "{max_running_requests: 512}",
    "overrides.env": '{NCCL_ALGO: "Ring"}',
    "environments": '{p2p-off: {NCCL_P2P_DISABLE: "1"}}',
    "patches.<name>.about": "flashinfer_cutlass is not autotuned",
    "patches.<name>.edits.file": "sglang/srt/server_args.py",
    "patches.<name>.edits.find": "DEFAULT = 1",
    "patches.<name>.edits.replace": "DEFAULT = 2",
    "overrides.load.request_rate": "[0.5]",
    "overrides.load.requests.duration_s": "60",
    "load.concurrency": "[1, 2, 64, 2048]",
    "load.request_rate": "[0.5, 2, 8]",
    "load.path": "~/prompts.jsonl",
    "load.max_concurrency": "256",
    "load.requests.duration_s": "60",
    "load.shared_prefix": "{groups: 8, prefix_len: 128}",
    "load.shared_prefix.prefix_len": "128",
    "load.also": "[{input_len: 1024, output_len: 1024}]",
    "load.also.input_len": "1024",
    "load.also.output_len": "1024",
    "load.also.concurrency": "[1, 64]",
    "load.slo": "{ttft_ms: 500, tpot_ms: 50}",
    "load.slo.ttft_ms": "500",
    "load.slo.tpot_ms": "50",
    "load.slo.e2e_ms": "10000",
    "load.input_len": "256",
    "load.output_len": "128",
    "load.client.engine": "sglang-cpu",
    "compare": "[{name: oea, baseline: {oea: off}, variant: {oea: {k0: 2}}, "
    "primary: {concurrency: 16}}]",
    "compare.name": "oea",
    "compare.baseline": "{oea: off}",
    "compare.variant": "{oea: {k0: 2}}",
    "compare.launches": "{min: 3, max: 5}",
    "compare.primary": "{concurrency: 16}",
    "compare.primary.concurrency": "16",
    "compare.primary.request_rate": "2",
    "rerun.launches": '["1"]',
}


def schema_text() -> str:
    """Return the JSON schema of a campaign file."""
    return json.dumps(Campaign.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation holds, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in typing.get_args(annotation) for model in _models(inner)]


def _type_text(annotation: Any) -> str:
    """Return a type as a reader of YAML would say it."""
    origin = typing.get_origin(annotation)
    inner = typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_text(inner[0])
    if origin is typing.Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in inner)
    if origin in (typing.Union, types.UnionType):
        texts = [_type_text(one) for one in inner if one is not type(None)]
        if {"text", "number", "switch"} <= set(texts):
            return "any value"
        return " or ".join(dict.fromkeys(texts))
    if origin is list:
        return f"list of {_type_text(inner[0])}"
    if origin is dict:
        return f"mapping of names to {_type_text(inner[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping, below"
    names = {bool: "switch", int: "whole number", float: "number", str: "text"}
    return names.get(annotation, "any value")


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if isinstance(default, BaseModel):
        return "as below"
    return "none" if default is None else f"`{json.dumps(default)}`"


def _bounds_text(field: FieldInfo) -> str:
    """Return the bounds of a number, as `> 0, <= 99`."""
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    found = []
    for bound in field.metadata:
        for name, sign in signs.items():
            if (value := getattr(bound, name, None)) is not None:
                found.append(f"{sign} {value}")
    return ", ".join(found)


def _summary(field: FieldInfo) -> str:
    """Return the first line of the docstring of the model that a key holds."""
    models = _models(field.annotation)
    return (models[0].__doc__ or "").strip().splitlines()[0] if models else ""


def _rows(model: type[BaseModel], path: str) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        key = f"{path}{name}"
        what = _type_text(field.annotation)
        bounds = _bounds_text(field)
        kind = f"{what}, {bounds}" if bounds else what
        meaning = (field.description or _summary(field)).replace("|", "\\|")
        default = _default_text(field)
        shown = f"`{_EXAMPLES[key]}`" if key in _EXAMPLES else default if "`" in default else ""
        rows.append(f"| `{key}` | {kind} | {default} | {meaning} | {shown} |")
        named = typing.get_origin(field.annotation) is dict
        for inner in _models(field.annotation):
            rows += _rows(inner, f"{key}.<name>." if named else f"{key}.")
    return rows


def reference_text() -> str:
    """Return the reference page."""
    rows = [
        "| key | type | default | meaning | example |",
        "|---|---|---|---|---|",
        *_rows(Campaign, ""),
    ]
    return _HEAD + "\n" + "\n".join(rows) + "\n"


def main() -> None:
    """Write both files below the working directory."""
    write_text(SCHEMA, schema_text())
    write_text(REFERENCE, reference_text())


if __name__ == "__main__":
    main()
