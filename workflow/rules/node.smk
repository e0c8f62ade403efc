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
