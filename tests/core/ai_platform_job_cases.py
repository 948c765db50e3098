"""Settings of a legacy job besides its cluster: access, scheduling, environment, a study."""

from tests.core.ai_platform_jobs import IMAGE, ONE, Case, container, custom, pool, read, spec, tuning_of

ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"
OLD_ENVIRONMENT = {"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "ai_platform"}
SCHEDULING = "$.trainingInput.scheduling"
STUDY = "$.trainingInput.hyperparameters"

JOB_CASES = (
    Case(
        name="account and network are passed on",
        written=custom(
            "{region: us-central1, network: projects/12345/global/networks/net, enableWebAccess: false}",
            serviceAccount=ACCOUNT,
        ),
        becomes=spec(ONE, serviceAccount=ACCOUNT, network="projects/12345/global/networks/net"),
    ),
    Case(
        name="scheduling",
        written=custom("""
            scheduling:
              maxRunningTime: 7200s
              maxWaitTime: 3600s
              priority: 10
              resilientToWorkerRestart: false
              strategy: LOW_COST
        """),
        becomes=spec(
            ONE, scheduling={"timeout": "7200s", "restartJobOnWorkerRestart": True, "strategy": "SPOT"}
        ),
        told=tuple(
            f"{SCHEDULING}.{key}"
            for key in ("maxWaitTime", "priority", "resilientToWorkerRestart", "strategy")
        ),
    ),
    Case(
        name="a longest wait is kept where the accelerators can be waited for",
        written=custom("""
            masterType: a2-highgpu-1g
            masterConfig: {acceleratorConfig: {type: NVIDIA_TESLA_A100, count: 1}}
            scheduling: {maxWaitTime: 3600s}
        """),
        becomes=spec(
            pool("a2-highgpu-1g", 1, container(), acceleratorType="NVIDIA_TESLA_A100", acceleratorCount=1),
            scheduling={"strategy": "FLEX_START", "maxWaitDuration": "3600s"},
        ),
        told=(f"{SCHEDULING}.maxWaitTime",),
    ),
    Case(
        name="a program that reads master is given the old environment",
        written=custom("{useChiefInTfConfig: false, workerType: n1-standard-4, workerCount: 1}"),
        becomes=spec(*[pool("n1-standard-4", 1, container(env=[OLD_ENVIRONMENT]))] * 2),
        told=("$.trainingInput.useChiefInTfConfig",),
    ),
    Case(
        name="a file in snake_case means the same",
        written=read(f"""
            labels: {{model_name: census}}
            training_input:
              scale_tier: CUSTOM
              master_type: n1-standard-4
              master_config: {{image_uri: '{IMAGE}'}}
              use_chief_in_tf_config: true
        """),
        becomes=spec(ONE),
    ),
    Case(
        name="what the old service wrote about a past job is ignored",
        written=custom()
        | read("{state: SUCCEEDED, createTime: '2020-01-01T00:00:00Z', etag: x, trainingOutput: {a: 1}}"),
        becomes=spec(ONE),
        told=("$.createTime", "$.etag", "$.state", "$.trainingOutput"),
    ),
    Case(
        name="hyperparameters are a study, with the service's defaults",
        written=custom("""
            hyperparameters:
              params:
              - {parameterName: lr, type: DOUBLE, minValue: 0.1, maxValue: 1.0}
        """),
        becomes=tuning_of(
            read("""
                metrics: [{metricId: training/hptuning/metric, goal: MAXIMIZE}]
                parameters:
                - {parameterId: lr, doubleValueSpec: {minValue: 0.1, maxValue: 1.0}}
                algorithm: ALGORITHM_UNSPECIFIED
                measurementSelectionType: LAST_MEASUREMENT
            """),
            spec(ONE),
        ),
    ),
    Case(
        name="every field of hyperparameters",
        written=custom("""
            hyperparameters:
              goal: MINIMIZE
              hyperparameterMetricTag: val/loss
              maxTrials: '12'
              maxParallelTrials: 3
              maxFailedTrials: 2
              enableTrialEarlyStopping: true
              algorithm: RANDOM_SEARCH
              params:
              - {parameterName: lr, type: DOUBLE, minValue: 0.001, maxValue: 0.1, scaleType: UNIT_LOG_SCALE}
              - {parameterName: units, type: INTEGER, minValue: 8.0, maxValue: '64', scaleType: UNIT_REVERSE_LOG_SCALE}
              - {parameterName: batch, type: DISCRETE, discreteValues: [16, 32.5], minValue: 1, scaleType: UNIT_LINEAR_SCALE}
              - {parameterName: kind, type: CATEGORICAL, categoricalValues: [a, b], scaleType: NONE}
        """),
        becomes=tuning_of(
            read("""
                metrics: [{metricId: val/loss, goal: MINIMIZE}]
                parameters:
                - {parameterId: lr, doubleValueSpec: {minValue: 0.001, maxValue: 0.1}, scaleType: UNIT_LOG_SCALE}
                - {parameterId: units, integerValueSpec: {minValue: '8', maxValue: '64'}, scaleType: UNIT_REVERSE_LOG_SCALE}
                - {parameterId: batch, discreteValueSpec: {values: [16, 32.5]}, scaleType: UNIT_LINEAR_SCALE}
                - {parameterId: kind, categoricalValueSpec: {values: [a, b]}}
                algorithm: RANDOM_SEARCH
                measurementSelectionType: LAST_MEASUREMENT
                medianAutomatedStoppingSpec: {}
            """),
            spec(ONE),
            maxTrialCount=12,
            parallelTrialCount=3,
            maxFailedTrialCount=2,
        ),
        told=(f"{STUDY}.enableTrialEarlyStopping", f"{STUDY}.params[2].minValue"),
    ),
)
