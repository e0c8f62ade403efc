"""What test_real_sglang.py runs: `real_children.py STORY` in a process of its own.

Like a launcher it spawns a child that imports SGLang's scheduler and loads the plug-ins; the
child tells its story as JSON. A launcher is signalled when a rank ends itself, so the signal
is caught and told here.
"""

import json
import multiprocessing
import os
import signal
import sys
import types
from pathlib import Path

ROWS, EXPERTS = 16, 256
SCALE = 2.5


def load():
    import sglang.srt.managers.scheduler  # noqa: F401 - a scheduler process has it, too
    from sglang.srt.plugins import load_plugins

    load_plugins()


def configs(topk, torch):
    """Routers as Qwen3, GLM-5 and DeepSeek-V3 have them, with top-8 of 256."""
    bias = torch.randn(EXPERTS, generator=torch.Generator().manual_seed(3)) * 0.1
    sigmoid = {
        "top_k": 8,
        "scoring_func": "sigmoid",
        "use_grouped_topk": True,
        "correction_bias": bias,
        "routed_scaling_factor": SCALE,
    }
    return {
        "softmax": topk.TopKConfig(top_k=8, torch_native=True),
        "glm5": topk.TopKConfig(
            **sigmoid,
            num_expert_group=1,
            topk_group=1,
            apply_routed_scaling_factor_on_output=True,
        ),
        "dsv3": topk.TopKConfig(**sigmoid, num_expert_group=8, topk_group=4),
    }


def routed(topk, config, mode, valid=None):
    """Run SGLang's select_experts within a forward of a mode; return what it and others saw."""
    import torch
    from sglang.srt.model_executor import forward_context
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    class Batch:
        forward_mode = ForwardMode[mode]

        def moe_num_token_non_padded(self):
            return None if valid is None else torch.tensor(valid)

    noise = torch.Generator().manual_seed(7)
    logits = torch.randn(ROWS, EXPERTS, generator=noise)
    recorded = []

    def on_select_experts(topk_ids):
        recorded.append(topk_ids)

    recorder = types.SimpleNamespace(on_select_experts=on_select_experts)
    vars(topk)["get_global_expert_distribution_recorder"] = lambda: recorder
    batch = Batch()
    context = forward_context.ForwardContext(attn_backend=None)
    with forward_context.forward_context(context, forward_batch=batch):
        out = topk.select_experts(
            torch.zeros(ROWS, 32),
            logits,
            config,
            layer_id=3,
            num_token_non_padded=batch.moe_num_token_non_padded(),
        )
    return {
        "ids": out.topk_ids.tolist(),
        "weights": out.topk_weights.tolist(),
        "recorded": recorded[0].tolist(),
    }


def routing(on):
    """Every router in decode and in prefill, with padding, then the proof."""
    import torch

    os.environ["OEA_ENABLE"] = str(int(on))
    load()
    from sglang.srt.layers.moe import topk

    story = {}
    for name, config in configs(topk, torch).items():
        story[name] = routed(topk, config, "DECODE")
        story[name]["extend"] = routed(topk, config, "EXTEND")
    story["padded"] = routed(topk, configs(topk, torch)["glm5"], "DECODE", valid=5)
    story["modules"] = sorted(name for name in sys.modules if name.startswith("sglang_oea"))
    story["hooked"] = hasattr(topk._post_process_topk_ids, "__wrapped__")
    return story


def started():
    """A Scheduler (its own __init__ replaced) is made, asked for a proof, and has not served."""
    import threading

    from sglang.srt.managers import scheduler

    scheduler.Scheduler.__init__ = lambda self, server_args, port_args: None
    load()
    folder = Path(os.environ["OEA_STATUS_DIR"])
    args = types.SimpleNamespace(max_running_requests=12, moe_runner_backend="triton")
    scheduler.Scheduler(args, None)
    (folder / "ask").write_text("nonce-1")
    proof = folder / f"rank-{os.getpid()}.json"
    waiter = threading.Event()
    while not proof.exists():  # bounded by the time-out of the whole story
        waiter.wait(0.02)
    return {"proof": json.loads(proof.read_text()), "pid": os.getpid()}


def refusals():
    """Everything that must end a scheduler process at its start; the text of each refusal."""
    import sglang.srt.managers.scheduler  # noqa: F401 - as in a scheduler process
    from sglang.srt import plugins

    from sglang_oea import plugin, rank
    from sglang_oea.refusal import Refused
    from sglang_oea.settings import Settings

    told = {}

    def attempt(name, act):
        try:
            act()
        except Refused as refusal:
            told[name] = refusal.text
        else:
            told[name] = None

    del os.environ["OEA_K0"]
    attempt("no k0, through SGLang's loader", plugins.load_plugins)
    os.environ["OEA_K0"] = "4"
    plugin.sglang_version = lambda: "0.5.22"
    attempt("version", plugin.register)
    plugin.sglang_version = lambda: "0.5.17"
    attempt("not what its version was", plugin.register)
    plugin.sglang_version = lambda: "0.5.23"
    os.environ["OEA_CORE"] = "triton"
    sys.modules["sglang_oea.triton_core"] = None
    attempt("kernel", plugin.register)
    del os.environ["OEA_CORE"], sys.modules["sglang_oea.triton_core"]
    there, plugin.POST_PROCESS = plugin.POST_PROCESS, plugin.POST_PROCESS + "_gone"
    attempt("hook", plugin.register)

    one = rank.Rank(Settings(4))
    import pkgutil

    unhooked = {there: pkgutil.resolve_name(there)}
    init = plugin._around_init(one, unhooked)
    attempt("not applied", lambda: init(print, None, types.SimpleNamespace(), None))
    init = plugin._around_init(one, {})
    args = types.SimpleNamespace(enable_torch_compile=True, enable_dp_attention=True)
    attempt("flags", lambda: init(print, None, server_args=args))
    attempt("format", lambda: one.refuse_format("BYPASSED"))
    return told


STORIES = {
    "on": lambda: routing(on=True),
    "off": lambda: routing(on=False),
    "started": started,
    "refusals": refusals,
}


def child(pipe, story):
    pipe.send(STORIES[story]())


def main():
    signals = []
    signal.signal(signal.SIGQUIT, lambda *_: signals.append("SIGQUIT"))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(theirs, sys.argv[1]))
    process.start()
    theirs.close()
    try:
        told = ours.recv()
    except EOFError:
        told = None
    process.join()
    json.dump({"told": told, "exit": process.exitcode, "signals": signals}, sys.stdout)


if __name__ == "__main__":
    main()
