"""sglang-matrix: a matrix of SGLang server configurations, launched, measured and reported."""

from snakemake.utils import min_version

min_version("9.27.0")


include: "workflow/rules/common.smk"
include: "workflow/rules/node.smk"
include: "workflow/rules/cell.smk"
include: "workflow/rules/home.smk"
include: "workflow/rules/ceiling.smk"
include: "workflow/rules/dataset.smk"
include: "workflow/rules/tracking.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    model,
    collect,
    comparisons,
    track,
    report,
    ceiling,
    ceilings,
    check,
    ledger,
    compare,
    profile,
    plan,
    home,
    measure,


rule all:
    default_target: True
    input:
        campaign_files,


onstart:
    SESSION.start(workflow.dag_settings.targets)


onsuccess:
    SESSION.finish()


onerror:
    SESSION.finish()
