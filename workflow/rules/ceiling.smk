"""What physics allows."""


rule ceiling:
    """Print what physics allows each cell, the largest headroom first; SESSION ends here."""
    log:
        "<logs>/ceiling.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "true > {log:q}"


rule ceilings:
    input:
        final_records,
        probe_records,
        node_record,
    output:
        "<results>/datasets/ceilings.parquet",
    log:
        "<logs>/ceilings.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        root=campaign_root,
        planned=planned_digest,
    message:
        "Compute what physics allows each point"
    script:
        "../scripts/ceilings.py"
