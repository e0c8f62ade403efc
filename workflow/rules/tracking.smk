"""Finished launches to MLflow; can be replayed at any time."""


rule track:
    input:
        points="<results>/datasets/points.parquet",
    output:
        "<results>/tracking.json",
    log:
        "<logs>/track.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        root=campaign_root,
        database="results/mlflow.db",
    message:
        "Track the launches in MLflow"
    script:
        "../scripts/track.py"
