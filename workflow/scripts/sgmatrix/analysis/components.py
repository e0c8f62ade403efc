"""Which component of a model a kernel or operator belongs to, told by its name.

The first pattern that is found in the name counts, so that what is special stands before what is
general: attention is often a cutlass kernel, and routing often has `topk` in its name. What no
pattern knows is `other`, and is shown as that.

Source    names in traces of SGLang (pull requests 22353, 22440 and 14544 of sgl-project/sglang) and
          in the sources of sglang 0.5.23, flashinfer, DeepGEMM, TensorRT-LLM, NCCL and PyTorch; a
          trace of sglang 0.5.15.post1 with Qwen3-30B-A3B on one H200, of which they know all but
          0.04 % of the time.
Not here  `aten::topk`, `aten::sort` and `aten::softmax`: routing and sampling both use them. On a
          CPU `aten::mm` and `aten::linear` are dense, though experts are made of them there too.
"""

from __future__ import annotations

import functools
import re

COLLECTIVES, ROUTING, EXPERTS, ATTENTION = "collectives", "routing", "experts", "attention"
DENSE, SAMPLING, ELEMENTWISE, MEMCPY, OTHER = "dense", "sampling", "elementwise", "memcpy", "other"
COMPONENTS = (
    *(ATTENTION, EXPERTS, ROUTING, DENSE, COLLECTIVES),
    *(SAMPLING, ELEMENTWISE, MEMCPY, OTHER),
)

PATTERNS: tuple[tuple[str, str], ...] = (
    (COLLECTIVES, r"nccl"),
    (COLLECTIVES, r"cross_device_reduce"),
    (COLLECTIVES, r"all_?reduce"),
    (COLLECTIVES, r"all_?gather"),
    (COLLECTIVES, r"reduce_?scatter"),
    (COLLECTIVES, r"all_?to_?all"),
    (COLLECTIVES, r"multimem"),
    (COLLECTIVES, r"deep_ep::"),
    (COLLECTIVES, r"^c10d::"),
    (COLLECTIVES, r"^gloo:"),
    (COLLECTIVES, r"record_param_comms"),
    (EXPERTS, r"finalizeMoe|expandInputRows"),
    (ROUTING, r"topk_?gating"),
    (ROUTING, r"topk_(softmax|sigmoid)"),
    (ROUTING, r"moe_?softmax"),
    (ROUTING, r"moe_align_block_size"),
    (ROUTING, r"count_and_sort_expert"),
    (ROUTING, r"grouped_topk|biased_topk|fused_topk"),
    (ROUTING, r"moe_fused_gate"),
    (ROUTING, r"routing"),
    (ROUTING, r"compute_(src2dst|seg_indptr)"),
    (ROUTING, r"router_triton_kernel"),
    (ROUTING, r"oea_kernel"),
    (EXPERTS, r"fused_moe|fused_experts"),
    (EXPERTS, r"matmul_ogs"),
    (EXPERTS, r"GroupProblemShape|GroupProblemVisitor|MoeProblemVisitor"),
    (EXPERTS, r"group(ed)?_?gemm"),
    (EXPERTS, r"GemmType\)?(::MGrouped|[12]\b)"),
    (EXPERTS, r"MoeFCGemm|moe_?gemm|moe_wna16|marlin_moe"),
    (EXPERTS, r"^bmm_.*(E2m1|E4m3|Bfloat16|Fp32)"),
    (EXPERTS, r"moe::dev::"),
    (EXPERTS, r"moe_sum"),
    (EXPERTS, r"ep_(scatter|gather)|(pre|post)_reorder"),
    (EXPERTS, r"silu_and_mul_masked"),
    (ATTENTION, r"flash_fwd|FlashAttn|flash::|flash_attention|flash_attn"),
    (ATTENTION, r"Batch(Decode|Prefill)With|SinglePrefillWith|SingleDecodeWith"),
    (ATTENTION, r"fmha"),
    (ATTENTION, r"^_fwd_(grouped_)?kernel"),
    (ATTENTION, r"merge_?states?|MergeStates"),
    (ATTENTION, r"(?-i:mla|Mla|MLA)"),
    (ATTENTION, r"mqa_logits|sparse_attn|nsa_"),
    (ATTENTION, r"scaled_dot_product"),
    (ATTENTION, r"(decode|extend|prefill)_attention"),
    (ATTENTION, r"set_(mla_)?kv_buffer|store_kv|reshape_and_cache"),
    (ATTENTION, r"kv_indices|kv_splits"),
    (ATTENTION, r"causal_conv1d|gated_delta|chunk_fwd|fused_recurrent"),
    (MEMCPY, r"^mem(cpy|set)"),
    (MEMCPY, r"direct_copy_kernel"),
    (MEMCPY, r"^aten::(copy_|to|_to_copy|contiguous|clone|cat|fill_|zero_)$"),
    (MEMCPY, r"CatArrayBatchedCopy|FillFunctor"),
    (
        SAMPLING,
        r"sampling::|TopKTopP|TopP(Sampling|Renorm)|TopK(Sampling|Renorm|Mask)|min_?p_?sampling",
    ),
    (SAMPLING, r"ArgMax|argmax"),
    (SAMPLING, r"cunn_SoftMax|softmax_warp_forward"),
    (SAMPLING, r"multinomial|distribution_|exponential_"),
    (SAMPLING, r"radixSort|RadixSort"),
    (DENSE, r"gemm|gemv|nvjet|cublas"),
    (DENSE, r"cutlass"),
    (DENSE, r"splitK"),
    (DENSE, r"marlin"),
    (DENSE, r"matmul|_packed_linear|scaled_mm"),
    (DENSE, r"^aten::(mm|addmm|bmm|baddbmm|linear)$"),
    (ELEMENTWISE, r"rms_?norm|layer_?norm|norm::|qknorm"),
    (ELEMENTWISE, r"rotary|rope(?!r)"),
    (ELEMENTWISE, r"(silu|gelu)|act_and_mul"),
    (ELEMENTWISE, r"quant"),
    (ELEMENTWISE, r"elementwise|reduce_kernel"),
    (ELEMENTWISE, r"embedding|index_select|indexSelect|index_elementwise|gather_kernel"),
    (ELEMENTWISE, r"^triton_(poi|red|per)_"),
    (ELEMENTWISE, r"^aten::(add|sub|mul|div|floor_divide|pow|exp|rsqrt|neg|sigmoid|clamp)_?$"),
    (ELEMENTWISE, r"^aten::(mean|sum|index|index_put|scatter|where|masked_fill)_?$"),
)
"""Component and pattern; capitals are as good as small letters, but for MLA: cf. SmemLayout."""

_COMPILED = tuple((component, re.compile(text, re.IGNORECASE)) for component, text in PATTERNS)


@functools.cache
def component_of(name: str) -> str:
    """Return the component of a kernel or operator; `other` where its name is not known."""
    return next((component for component, one in _COMPILED if one.search(name)), OTHER)
