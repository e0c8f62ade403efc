"""History to tables."""


rule collect:
    input:
        final_records,
        probe_records,
        node_record,
        ceilings="<results>/datasets/ceilings.parquet",
    output:
        cells="<results>/datasets/cells.parquet",
        points="<results>/datasets/points.parquet",
        requests="<results>/datasets/requests.parquet",
        telemetry="<results>/datasets/telemetry.parquet",
        experts="<results>/datasets/experts.parquet",
        left_out="<results>/left-out.json",
    log:
        "<logs>/collect.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        root=campaign_root,
        planned=planned_digest,
    message:
        "Collect the history into tables"
    script:
        "../scripts/collect.py"


rule comparisons:
    input:
        points="<results>/datasets/points.parquet",
    output:
        "<results>/datasets/comparisons.parquet",
    log:
        "<logs>/comparisons.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        root=campaign_root,
    message:
        "Conclude the comparisons of cells"
    script:
        "../scripts/comparisons.py"
