"""Finished launches to MLflow; can be replayed at any time."""


def tracked_files(wildcards):
    """What is tracked comes first, and the report before MLflow, which may be down.

    The target `track` tells MLflow what is in the history now, and measures nothing.
    """
    if "track" not in workflow.dag_settings.targets:
        return ["<results>/datasets/points.parquet", "<results>/report/index.html"]
    if workflow.is_main_process and workflow.executor_plugin and not workflow.dryrun:
        (LAYOUT.root / "tracking.json").unlink(missing_ok=True)
    return []


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
