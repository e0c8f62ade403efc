"""The life of one launch: launch, warmup, benchmark of each load point, teardown.

A fault of the server is a record, and the job of the step succeeds; a disturbance by the
environment fails the job, and nothing is filed.
"""


rule launch:
    input:
        model=ancient(model_files),
        rounds=earlier_rounds,
    output:
        temp("<results>/cells/{cell}/launch-{launch}/server.json"),
    log:
        "<logs>/{cell}/launch-{launch}/launch.log",
    priority: place_in_plan
    group:
        "{cell}_launch-{launch}"
    conda:
        "../../envs/workflow.yaml"
    resources:
        launch_slot=1,
        gpu=lambda wildcards: PLAN.cells[wildcards.cell].gpus,
    params:
        key=key_of,
        attempt=attempt_of,
        harness=HARNESS_VERSION,
    message:
        "Launch {wildcards.cell}, launch {wildcards.launch}"
    script:
        "../scripts/launch.py"


rule warmup:
    input:
        server="<results>/cells/{cell}/launch-{launch}/server.json",
    output:
        temp("<results>/cells/{cell}/launch-{launch}/warmup.json"),
    log:
        "<logs>/{cell}/launch-{launch}/warmup.log",
    priority: before_place
    group:
        "{cell}_launch-{launch}"
    conda:
        "../../envs/workflow.yaml"
    params:
        attempt=attempt_of,
    message:
        "Warm up {wildcards.cell}, launch {wildcards.launch}"
    script:
        "../scripts/warmup.py"


rule benchmark:
    input:
        server="<results>/cells/{cell}/launch-{launch}/server.json",
        warmup="<results>/cells/{cell}/launch-{launch}/warmup.json",
        previous=previous_step,
    output:
        record="<results>/cells/{cell}/launch-{launch}/points/{load}.json",
        requests="<results>/cells/{cell}/launch-{launch}/points/{load}.requests.parquet",
    log:
        "<logs>/{cell}/launch-{launch}/benchmark-{load}.log",
    priority: before_place
    group:
        "{cell}_launch-{launch}"
    conda:
        "../../envs/workflow.yaml"
    params:
        key=point_key_of,
        attempt=attempt_of,
        harness=HARNESS_VERSION,
    message:
        "Measure {wildcards.cell}, launch {wildcards.launch}, at {wildcards.load}"
    script:
        "../scripts/benchmark.py"


rule teardown:
    input:
        server="<results>/cells/{cell}/launch-{launch}/server.json",
        warmup="<results>/cells/{cell}/launch-{launch}/warmup.json",
        points=points_of,
    output:
        "<results>/cells/{cell}/launch-{launch}/teardown.json",
    log:
        "<logs>/{cell}/launch-{launch}/teardown.log",
    priority: before_place
    group:
        "{cell}_launch-{launch}"
    conda:
        "../../envs/workflow.yaml"
    params:
        attempt=attempt_of,
    message:
        "Tear down {wildcards.cell}, launch {wildcards.launch}"
    script:
        "../scripts/teardown.py"


# Before the timed launches: what it finds says whether they are worth their time.
rule probe:
    input:
        model=ancient(probe_model_files),
        reference=probed_reference,
    output:
        record="<results>/cells/{cell}/probe/probe.json",
        experts="<results>/cells/{cell}/probe/experts.parquet",
    log:
        "<logs>/{cell}/probe/probe.log",
    priority: len(PLAN.launches) * 3
    conda:
        "../../envs/workflow.yaml"
    resources:
        launch_slot=1,
        gpu=lambda wildcards: PLAN.cells[wildcards.cell].gpus,
    params:
        key=key_of,
        attempt=probe_attempt_of,
        harness=HARNESS_VERSION,
    message:
        "Probe {wildcards.cell}"
    script:
        "../scripts/probe.py"


# Beside a campaign, never a part of it: only the target `profile` asks for it.
rule profile_cell:
    input:
        model=ancient(probe_model_files),
    output:
        record="<results>/cells/{cell}/profile/profile.json",
    log:
        "<logs>/{cell}/profile/profile.log",
    conda:
        "../../envs/workflow.yaml"
    resources:
        launch_slot=1,
        gpu=lambda wildcards: PLAN.cells[wildcards.cell].gpus,
    params:
        key=key_of,
        attempt=profile_attempt_of,
        harness=HARNESS_VERSION,
    message:
        "Profile {wildcards.cell}"
    script:
        "../scripts/profile_cell.py"


rule profile:
    """Profile the cell of `--config cell=<cell>`; SESSION prints the table."""
    input:
        profile_record,
