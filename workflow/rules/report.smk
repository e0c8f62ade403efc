"""What people read."""


rule report:
    input:
        points="<results>/datasets/points.parquet",
        comparisons="<results>/datasets/comparisons.parquet",
    output:
        html=report(
            "<results>/report/index.html",
            caption="../report/index.rst",
            category="Campaign",
            labels={"what": "report"},
        ),
        csv=report(
            "<results>/report/points.csv",
            caption="../report/points.rst",
            category="Campaign",
            labels={"what": "all points"},
        ),
    log:
        "<logs>/report.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        root=campaign_root,
        ledger=ledger_digest,
        profiles=profiles_made,
    message:
        "Write the report"
    script:
        "../scripts/report.py"


rule check:
    input:
        points="<results>/datasets/points.parquet",
    log:
        "<logs>/check.log",
    conda:
        "../../envs/workflow.yaml"
    message:
        "Name the cells that failed"
    script:
        "../scripts/check.py"


rule ledger:
    """Print ledger entries that the finished comparisons come to; SESSION ends here."""
    log:
        "<logs>/ledger.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "true > {log:q}"


rule compare:
    """Set two finished campaigns side by side, `--config base=<campaign> other=<campaign>`."""
    log:
        "<logs>/compare.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "true > {log:q}"
