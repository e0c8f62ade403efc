"""Command line of the stand-in: SGLang's own flags by their real names, and `--standin-…`.

Source    names, aliases, types and defaults: sglang 0.5.23, srt/arg_groups/fields/*.py.
          The program name in usage and errors is `sglang serve`: srt/server_args.py:679.
Not here  every flag of the real server (about 540). A flag that a test needs is one more line.
"""

import argparse
import os
import sys
from typing import Any

# name, type, default, further spellings. A bool is a switch. No real flag has an empty default.
SGLANG_FLAGS = """
model_path str - --model
tokenizer_path str None
served_model_name str None
host str 127.0.0.1
port int 30000
api_key str None
device str None
dtype str auto
quantization str None
kv_cache_dtype str auto
load_format str auto
context_length int None
revision str None
trust_remote_code bool
skip_tokenizer_init bool
skip_server_warmup bool
json_model_override_args str {}
random_seed int None
tp_size int 1 --tensor-parallel-size --tp
pp_size int 1 --pipeline-parallel-size
dp_size int 1 --data-parallel-size --dp
ep_size int 1 --expert-parallel-size --ep
enable_dp_attention bool
enable_dp_lm_head bool
moe_dense_tp_size int None
nnodes int 1
node_rank int 0
nccl_port int None
dist_init_addr str None --nccl-init-addr
base_gpu_id int 0
mem_fraction_static float 0.88
max_running_requests int None
max_total_tokens int None
max_prefill_tokens int 16384
chunked_prefill_size int None
page_size int None
schedule_policy str fcfs
schedule_conservativeness float 1.0
num_continuous_decode_steps int 1
stream_interval int 1
enable_mixed_chunk bool
disable_radix_cache bool
disable_cuda_graph bool
disable_overlap_schedule bool
disable_custom_all_reduce bool
disable_shared_experts_fusion bool
enable_torch_compile bool
attention_backend str None
prefill_attention_backend str None
decode_attention_backend str None
sampling_backend str None
moe_runner_backend str auto
moe_a2a_backend str none
speculative_algorithm str None
speculative_num_steps int None
expert_distribution_recorder_mode str None
expert_distribution_recorder_buffer_size int None
enable_custom_logit_processor bool
enable_metrics bool
enable_cache_report bool
log_level str info
log_level_http str None
log_requests bool
decode_log_interval int 40
watchdog_timeout float 300
"""

STANDIN_FLAGS: dict[str, dict[str, Any]] = {
    "--standin-ready-ms": {"type": float, "default": 50.0, "help": "process start to /health 200"},
    "--standin-open-ms": {"type": float, "help": "process start to open port (0.6 x ready)"},
    "--standin-health-ms": {
        "type": float,
        "default": 0.0,
        "help": "time /health takes once up (the real one generates a token: 1000)",
    },
    "--standin-ttft-ms": {"type": float, "default": 5.0, "help": "admission to first token"},
    "--standin-hit-ttft-ms": {"type": float, "default": 1.0, "help": "the same for a seen prompt"},
    "--standin-tpot-ms": {"type": float, "default": 2.0, "help": "one lock-step decode tick"},
    "--standin-tpot-per-req-ms": {
        "type": float,
        "default": 0.0,
        "help": "added to a tick for each running request",
    },
    "--standin-cold-factor": {"type": int, "default": 1, "help": "how much slower when cold"},
    "--standin-cold-requests": {
        "type": int,
        "default": 20,
        "help": "requests that are cold after each new highest concurrency",
    },
    "--standin-stop-ms": {"type": float, "default": 0.0, "help": "SIGTERM to exit"},
    "--standin-life-s": {
        "type": float,
        "default": 3600.0,
        "help": "ends by itself after this, whatever a killed test left behind",
    },
    "--standin-events": {"help": "append-only truth log, one JSON object a line"},
    "--standin-fault": {
        "action": "append",
        "default": [],
        "metavar": "NAME[:ARG][@N][?FLAG=VALUE]",
        "help": "see standin_faults.py; repeatable",
    },
}

TYPES = {"str": str, "int": int, "float": float}


def real_flags() -> list[tuple[str, type, Any, list[str]]]:
    """Return (name, type, default, other spellings) of every imitated SGLang flag."""
    flags: list[tuple[str, type, Any, list[str]]] = []
    for line in SGLANG_FLAGS.split("\n")[1:-1]:
        name, kind, *rest = line.split()
        if kind == "bool":
            flags.append((name, bool, False, rest))
        else:
            default = None if rest[0] in ("None", "-") else TYPES[kind](rest[0])
            flags.append((name, TYPES[kind], default, rest[1:]))
    return flags


def parse(argv: list[str]) -> tuple[dict[str, Any], argparse.Namespace, argparse.ArgumentParser]:
    """Return (SGLang's server args, stand-in settings, the parser for further errors).

    `STANDIN_ARGS` in the environment is read too, for callers that pass only flags the real
    server knows; it never shows in `launch_command`.
    """
    parser = argparse.ArgumentParser(prog="sglang serve")
    for name, kind, default, others in real_flags():
        spellings = ["--" + name.replace("_", "-"), *others]
        if kind is bool:
            parser.add_argument(*spellings, dest=name, action="store_true")
        else:
            required = name == "model_path"
            parser.add_argument(
                *spellings, dest=name, type=kind, default=default, required=required
            )
    for flag, options in STANDIN_FLAGS.items():
        parser.add_argument(flag, **options)

    parsed = vars(parser.parse_args([*argv, *os.environ.get("STANDIN_ARGS", "").split()]))
    ours = {name[8:]: parsed.pop(name) for name in list(parsed) if name.startswith("standin_")}
    if ours["open_ms"] is None:
        ours["open_ms"] = 0.6 * ours["ready_ms"]
    parsed["served_model_name"] = parsed["served_model_name"] or parsed["model_path"]
    parsed["tokenizer_path"] = parsed["tokenizer_path"] or parsed["model_path"]
    parsed["launch_command"] = " ".join(argv)
    return parsed, argparse.Namespace(**ours), parser


def dump_flags() -> None:
    """Print the imitated flags, one a line: `python -m sglang.standin_flags`."""
    for name, kind, default, others in real_flags():
        sys.stdout.write(f"--{name.replace('_', '-')} {kind.__name__} {default} {others}\n")


if __name__ == "__main__":
    dump_flags()
