"""What the OEA plug-in of an engine says of itself: version, hash, whether it fits the engine."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sgmatrix.core.engine_python import ask_python
from sgmatrix.plan.engines import Installation

PLUGIN = "sglang_oea"
"""Its distribution, which an engine needs for every cell of the axis `oea`, on or off."""


def plugin_facts(engine: Installation) -> dict[str, Any]:
    """Return {plugin_version, plugin_sha256, sglang_version, supported, why}; empty without it."""
    if PLUGIN not in engine.plugins:
        return {}
    return dict(_asked(engine.python, tuple(sorted(engine.env.items()))))


def plugin_obstacle(engine: Installation) -> str | None:
    """Return why an engine cannot run cells of the axis `oea`; None where it can."""
    name = PLUGIN.replace("_", "-")
    if PLUGIN not in engine.plugins:
        return (
            f"oea needs the plug-in {name} in engine {engine.name}; fix: install it there, as "
            f"plugins/{name}/README.md says"
        )
    facts = plugin_facts(engine)
    if not facts.get("supported"):
        return f"the plug-in {name} of engine {engine.name}: {facts.get('why')}"
    return None


@lru_cache
def _asked(python: str, env: tuple[tuple[str, str], ...]) -> tuple[tuple[str, Any], ...]:
    try:
        facts: dict[str, Any] = ask_python(python, ["-m", f"{PLUGIN}.support"], dict(env))
    except OSError as error:
        facts = {"supported": False, "why": f"it does not answer: {error}"}
    return tuple(facts.items())
