"""Number formats of weights and KV caches: bytes per value, and the units that multiply them."""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal["fp32", "bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]

FORMATS: tuple[Format, ...] = get_args(Format)

BYTES: dict[Format, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "nvfp4": 0.5 + 1 / 16,  # blocks of 16 with one 8-bit scale
    "mxfp4": 0.5 + 1 / 32,  # blocks of 32 with one 8-bit scale
}
"""Bytes per value, the scales of block formats included."""

Unit = Literal["bf16", "fp8", "int8", "fp4"]

UNIT: dict[Format, Unit] = {
    "fp32": "bf16",  # no faster than bf16, so that the bound holds
    "bf16": "bf16",
    "fp8": "fp8",
    "int8": "int8",
    "int4": "bf16",  # unpacked before it is multiplied
    "nvfp4": "fp4",
    "mxfp4": "fp4",
}
"""Matrix units that multiply a format, the keys of a device's rates."""
