"""SGLang's entry point: what is registered in which process.

Off (OEA_ENABLE unset or 0): nothing is registered, no thread is started, no file is written.
On: the launcher checks the settings and the version; a process that is or may become a
scheduler rank gets the hooks. Whatever goes wrong ends the process (`refusal`).

At the top of this file only the standard library and modules without torch: SGLang logs and
swallows an error of this import.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_oea.refusal import refuse
from sglang_oea.settings import Settings, read_settings
from sglang_oea.support import READ, SUPPORTED, obstacles, sglang_version, version_obstacle

if TYPE_CHECKING:
    from sglang_oea.modes import Hook
    from sglang_oea.rank import Rank

SCHEDULER = "sglang.srt.managers.scheduler"
POST_PROCESS = "sglang.srt.layers.moe.topk._post_process_topk_ids"
SELECT = "sglang.srt.layers.moe.topk.select_experts"
INIT = f"{SCHEDULER}.Scheduler.__init__"
SAYS_PADDING = "sglang.srt.model_executor.forward_batch_info.enable_num_token_non_padded"

RANKS = {"tp_rank": "tp_rank", "pp_rank": "pp_rank", "dp_rank": "dp_rank", "ep_rank": "moe_ep_rank"}


def register() -> None:
    """Register the hooks if the environment asks for OEA; SGLang calls it in every process.

    Raises:
        Refused: OEA is asked for and cannot run, for whatever reason.
    """
    try:
        settings = read_settings(os.environ)
        if settings is not None:
            _register(settings)
    except Exception as problem:  # noqa: BLE001 - the loader would swallow it
        refuse(f"it could not start: {problem!r}", fix="report this, or measure without OEA")


def _register(settings: Settings) -> None:
    version = sglang_version()
    why = version_obstacle(version)
    if why is not None:
        refuse(why, fix="install a supported version, or measure without OEA")
    # A scheduler process loads plug-ins from within this module, so there it is imported.
    if multiprocessing.parent_process() is None or SCHEDULER not in sys.modules:
        return
    import torch

    from sglang_oea.modes import detect
    from sglang_oea.rank import Rank

    rank = Rank(settings)
    rank.detector = detector = detect(rank.refuse_format)
    if detector.name != SUPPORTED[str(version)]:
        refuse(
            f"SGLang {version} has the mode detector {detector.name}, not "
            f"{SUPPORTED[str(version)]}: it is not what that version was",
            fix="reinstall SGLang",
        )
    on_cuda = torch.version.cuda is not None
    if settings.core == "triton" or (settings.core == "auto" and on_cuda):
        import sglang_oea.triton_core  # noqa: F401 - fails here, not at the first token
    hooks = [
        (POST_PROCESS, rank.around_post_process, "AROUND"),
        (SELECT, rank.around_select, "AROUND"),
        *detector.hooks,
    ]
    if settings.mask_padding:
        hooks.append((SAYS_PADDING, lambda _original: True, "AROUND"))
    if on_cuda:
        from sglang_oea import capture

        hooks.append((capture.BEGIN, rank.guard.around_begin, "AROUND"))
        hooks.append((capture.END, rank.guard.around_end, "AROUND"))
    unhooked = _add(hooks)
    _add([(INIT, _around_init(rank, unhooked), "AROUND")])


def _add(hooks: list[Hook]) -> dict[str, object]:
    """Register hooks, which SGLang applies after all plug-ins have run; return what they wrap."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    originals: dict[str, object] = {}
    for target, hook, kind in hooks:
        try:
            originals[target] = pkgutil.resolve_name(target)
        except (ImportError, AttributeError, ValueError) as missing:
            refuse(f"this SGLang has no {target}: {missing!r}", fix="reinstall SGLang")
        HookRegistry.register(target, hook, HookType[kind])
    return originals


def _around_init(rank: Rank, unhooked: Mapping[str, object]) -> Callable[..., Any]:
    """Return the hook AROUND Scheduler.__init__: refuse early, answer once it is ready."""

    def around_init(original: Callable[..., Any], scheduler: Any, *args: Any, **kw: Any) -> Any:
        server_args = kw.get("server_args", args[0] if args else None)
        given = {name: getattr(server_args, name, None) for name in READ}
        rank.serving = True
        for target, original_of_it in unhooked.items():
            # SGLang only logs a hook that it could not apply.
            if pkgutil.resolve_name(target) is original_of_it:
                rank.refuse(f"the hook of {target} was not applied", "see the log above this line")
        found = obstacles(given)
        if found:
            rank.refuse("; ".join(found), "change the flags, or measure without OEA")
        rank.most_rows = _most_rows(server_args) or rank.most_rows
        result = original(scheduler, *args, **kw)
        if rank.settings.status_dir is not None:
            from sglang_oea.proof import Responder

            where = _ranks_of(scheduler)
            Responder(
                Path(rank.settings.status_dir), lambda: {**where, **rank.facts()}, rank.guard
            ).start()
        return result

    return around_init


def _most_rows(server_args: Any) -> int | None:
    """Return the largest decode batch that the server names, in rows; None when it names none."""
    sizes = [
        getattr(server_args, "max_running_requests", None),
        getattr(server_args, "cuda_graph_max_bs_decode", None),
        *(getattr(server_args, "cuda_graph_bs_decode", None) or ()),
    ]
    return max((int(size) for size in sizes if size), default=None)


def _ranks_of(scheduler: Any) -> Mapping[str, int | None]:
    """Return the rank's place: from Scheduler.ps (to 0.5.17) or the parallel context (0.5.23)."""
    places = [getattr(scheduler, "ps", None), scheduler]
    context = sys.modules.get("sglang.srt.runtime_context")
    if hasattr(context, "get_parallel"):
        places.append(context.get_parallel())
    found: dict[str, int | None] = {}
    for ours, theirs in RANKS.items():
        found[ours] = None
        for place in places:
            try:
                value = getattr(place, theirs)
            except (AssertionError, AttributeError, RuntimeError, ValueError):
                continue  # the parallel context raises for what a server does not have
            found[ours] = None if value is None else int(value)
            break
    return found
