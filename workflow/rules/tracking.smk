"""Finished launches to MLflow; can be replayed at any time."""


rule track:
    input:
        tracked_files,
    output:
        "<results>/tracking.json",
    log:
        "<logs>/track.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        root=campaign_root,
        asked=SESSION.options.tracking_uri,
        target=SESSION.options.tracking_target(),
    message:
        "Track the launches in MLflow"
    script:
        "../scripts/track.py"
