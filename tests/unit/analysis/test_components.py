"""Names of real kernels and operators, and the component of each; every pattern has its name."""

import re

import pytest

from sgmatrix.analysis.components import COMPONENTS, OTHER, PATTERNS, component_of

# (component, pattern, a name that this pattern is there for)
KNOWN = [
    ("collectives", r"nccl", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)"),
    (
        "collectives",
        r"cross_device_reduce",
        "void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>(sglang::RankData*)",
    ),
    (
        "collectives",
        r"all_?reduce",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<>",
    ),
    ("collectives", r"all_?gather", "c10d::_allgather_base_"),
    ("collectives", r"reduce_?scatter", "c10d::_reduce_scatter_base_"),
    ("collectives", r"all_?to_?all", "c10d::alltoall_base_"),
    ("collectives", r"multimem", "multimem_one_shot_kernel<c10::BFloat16>"),
    ("collectives", r"deep_ep::", "void deep_ep::internode_ll::dispatch<false, true, 7168>"),
    ("collectives", r"^c10d::", "c10d::broadcast_"),
    ("collectives", r"^gloo:", "gloo:broadcast"),
    ("collectives", r"record_param_comms", "record_param_comms"),
    ("experts", r"finalizeMoe|expandInputRows", "void finalizeMoeRoutingKernel<__nv_bfloat16>"),
    ("routing", r"topk_?gating", "void topkGatingSoftmax<__nv_bfloat16, 8, 128, 4, 16, 32>"),
    ("routing", r"topk_(softmax|sigmoid)", "sgl_kernel::topk_softmax_cpu"),
    ("routing", r"moe_?softmax", "void moeSoftmax<float, 256>(float const*, bool const*)"),
    ("routing", r"moe_align_block_size", "void moe_align_block_size_kernel<int>(int const*)"),
    (
        "routing",
        r"count_and_sort_expert",
        "void count_and_sort_expert_tokens_kernel<int>(int const*, int*)",
    ),
    ("routing", r"grouped_topk|biased_topk|fused_topk", "sgl_kernel::grouped_topk_cpu"),
    ("routing", r"moe_fused_gate", "void moe_fused_gate_kernel<cutlass::bfloat16_t, 8, 32>"),
    ("routing", r"routing", "moe::dev::routing::routingDeepSeek::routingMainKernel<>"),
    ("routing", r"compute_(src2dst|seg_indptr)", "compute_seg_indptr_triton_kernel"),
    ("routing", r"router_triton_kernel", "_router_triton_kernel"),
    ("routing", r"oea_kernel", "_oea_kernel"),
    ("experts", r"fused_moe|fused_experts", "fused_moe_kernel"),
    ("experts", r"matmul_ogs", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x256x128x1_swiglu"),
    (
        "experts",
        r"GroupProblemShape|GroupProblemVisitor|MoeProblemVisitor",
        (
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::"
            "GroupProblemShape<cute::tuple<int, int, int> > > >"
        ),
    ),
    ("experts", r"group(ed)?_?gemm", "grouped_gemm_triton_kernel"),
    (
        "experts",
        r"GemmType\)?(::MGrouped|[12]\b)",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, (deep_gemm::GemmType)2>",
    ),
    ("experts", r"MoeFCGemm|moe_?gemm|moe_wna16|marlin_moe", "cutlass::gemm::kernel::MoeFCGemm<>"),
    (
        "experts",
        r"^bmm_.*(E2m1|E4m3|Bfloat16|Fp32)",
        "bmm_E2m1_E2m1E2m1_Fp32_t128x8x512u2_s6_et128x8_m128x8x64_cga1x1x1_16dp256b_sm100f",
    ),
    ("experts", r"moe::dev::", "moe::dev::activation::activationKernel<>"),
    ("experts", r"moe_sum", "void moe_sum_reduce_warp_per_token_vec_kernel<16>"),
    ("experts", r"ep_(scatter|gather)|(pre|post)_reorder", "_fwd_kernel_ep_scatter_2"),
    ("experts", r"silu_and_mul_masked", "_silu_and_mul_masked_post_quant_kernel"),
    (
        "attention",
        r"flash_fwd|FlashAttn|flash::|flash_attention|flash_attn",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<> > >",
    ),
    (
        "attention",
        r"Batch(Decode|Prefill)With|SinglePrefillWith|SingleDecodeWith",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<>",
    ),
    ("attention", r"fmha", "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64"),
    ("attention", r"^_fwd_(grouped_)?kernel", "_fwd_grouped_kernel_stage1"),
    (
        "attention",
        r"merge_?states?|MergeStates",
        "void flashinfer::PersistentVariableLengthMergeStatesKernel<8u, 16u>",
    ),
    ("attention", r"(?-i:mla|Mla|MLA)", "void sm100::decode::head64::flashmla_kernel<>"),
    ("attention", r"mqa_logits|sparse_attn|nsa_", "deep_gemm::sm90_fp8_paged_mqa_logits<>"),
    ("attention", r"scaled_dot_product", "aten::scaled_dot_product_attention"),
    ("attention", r"(decode|extend|prefill)_attention", "sgl_kernel::decode_attention_cpu"),
    ("attention", r"set_(mla_)?kv_buffer|store_kv|reshape_and_cache", "set_mla_kv_buffer_kernel"),
    ("attention", r"kv_indices|kv_splits", "create_flashinfer_kv_indices_triton"),
    (
        "attention",
        r"causal_conv1d|gated_delta|chunk_fwd|fused_recurrent",
        "_causal_conv1d_update_kernel",
    ),
    ("memcpy", r"^mem(cpy|set)", "Memcpy DtoD (Device -> Device)"),
    (
        "memcpy",
        r"direct_copy_kernel",
        (
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
            "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}> >"
        ),
    ),
    ("memcpy", r"^aten::(copy_|to|_to_copy|contiguous|clone|cat|fill_|zero_)$", "aten::_to_copy"),
    (
        "memcpy",
        r"CatArrayBatchedCopy|FillFunctor",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<>",
    ),
    (
        "sampling",
        r"sampling::|TopKTopP|TopP(Sampling|Renorm)|TopK(Sampling|Renorm|Mask)|min_?p_?sampling",
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>",
    ),
    (
        "sampling",
        r"ArgMax|argmax",
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
            "at::native::ArgMaxOps<float> > >"
        ),
    ),
    (
        "sampling",
        r"cunn_SoftMax|softmax_warp_forward",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>",
    ),
    ("sampling", r"multinomial|distribution_|exponential_", "aten::exponential_"),
    (
        "sampling",
        r"radixSort|RadixSort",
        "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<>",
    ),
    ("dense", r"gemm|gemv|nvjet|cublas", "nvjet_tst_64x24_64x16_4x1_v_bz_splitK_bias_TNT"),
    ("dense", r"cutlass", "void cutlass::Kernel2<cutlass_80_wmma_tensorop_s161616>"),
    ("dense", r"splitK", "void cublasLt::splitKreduce_kernel<32, 16, int>"),
    ("dense", r"marlin", "void marlin::Marlin<__nv_bfloat16, 1024l, 256>"),
    ("dense", r"matmul|_packed_linear|scaled_mm", "_w8a8_block_fp8_matmul"),
    ("dense", r"^aten::(mm|addmm|bmm|baddbmm|linear)$", "aten::linear"),
    (
        "elementwise",
        r"rms_?norm|layer_?norm|norm::|qknorm",
        "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>",
    ),
    (
        "elementwise",
        r"rotary|rope(?!r)",
        "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedKernel<>",
    ),
    ("elementwise", r"(silu|gelu)|act_and_mul", "void act_and_mul_kernel<bf16>(ActivationParams)"),
    ("elementwise", r"quant", "void per_token_group_quant_8bit_kernel<__nv_bfloat16>"),
    (
        "elementwise",
        r"elementwise|reduce_kernel",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >",
    ),
    (
        "elementwise",
        r"embedding|index_select|indexSelect|index_elementwise|gather_kernel",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16>",
    ),
    ("elementwise", r"^triton_(poi|red|per)_", "triton_poi_fused_add_mul_0"),
    (
        "elementwise",
        r"^aten::(add|sub|mul|div|floor_divide|pow|exp|rsqrt|neg|sigmoid|clamp)_?$",
        "aten::div_",
    ),
    (
        "elementwise",
        r"^aten::(mean|sum|index|index_put|scatter|where|masked_fill)_?$",
        "aten::index_put_",
    ),
]


@pytest.mark.parametrize(("component", "pattern", "name"), KNOWN, ids=[x[1] for x in KNOWN])
def test_a_known_name_is_of_its_component_and_needs_its_pattern(component, pattern, name):
    assert component_of(name) == component
    assert re.search(pattern, name, re.IGNORECASE)


def test_every_pattern_has_its_name_and_every_component_a_pattern():
    assert [(component, pattern) for component, pattern, _ in KNOWN] == list(PATTERNS)
    assert {component for component, _, _ in KNOWN} == {*COMPONENTS} - {OTHER}


@pytest.mark.parametrize(
    "name",
    ["a_kernel_of_tomorrow", "aten::topk", "aten::sort", "aten::softmax", "aten::slice", "detach"],
)
def test_what_no_pattern_knows_is_other(name):
    assert component_of(name) == "other"


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, (deep_gemm::GemmType)0>", "dense"),
        ("void flashinfer::trtllm_allreduce_fusion::rmsnorm_kernel", "collectives"),
        ("void topkGatingSoftmax<float>", "routing"),
        ("void cutlass::device_kernel<cutlass::gemm::SmemLayoutAtom, PropertyX>", "dense"),
        ("layernorm_fwd_kernel", "elementwise"),
    ],
)
def test_what_is_special_goes_before_what_is_general(name, component):
    assert component_of(name) == component
