"""What was measured elsewhere, told from its copy; see SESSION.home."""


rule home:
    output:
        "<results>/home.json",
    log:
        "<logs>/home.log",
    conda:
        "../../envs/workflow.yaml"
    params:
        history=copied_history,
    message:
        "Take in what was measured elsewhere"
    script:
        "../scripts/home.py"
