"""What the node needs before the first launch."""


rule model:
    output:
        config="results/models/{recipe}/config.json",
        tokenizer="results/models/{recipe}/tokenizer.json",
        tokenizer_config="results/models/{recipe}/tokenizer_config.json",
    log:
        "<logs>/model-{recipe}.log",
    conda:
        "../../envs/workflow.yaml"
    message:
        "Make the model {wildcards.recipe}"
    script:
        "../scripts/model.py"


# Before everything that is launched: the node is idle then.
rule node_probe:
    output:
        record="<results>/node-probe.json",
    log:
        "<logs>/node-probe.log",
    priority: len(PLAN.launches) * 4
    conda:
        "../../envs/workflow.yaml"
    resources:
        launch_slot=1,
        gpu=SESSION.node_probe.gpus,
    params:
        asked=SESSION.node_probe.asked,
    message:
        "Probe the node"
    script:
        "../scripts/node_probe.py"


rule measure:
    """All that needs the node, and nothing else: the tables and the report are made elsewhere."""
    input:
        measured_files,
    log:
        "<logs>/measure.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "true > {log:q}"


rule plan:
    """Print cells, launches, points, expected time and the flag audit; SESSION ends here."""
    log:
        "<logs>/plan.log",
    conda:
        "../../envs/workflow.yaml"
    shell:
        "true > {log:q}"
