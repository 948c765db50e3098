"""A model and its data, which are trained. A workload has both; a run is one attempt to train it, on one replica."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainer.data.examples import Examples, counted_examples
from trainer.replicas.cluster import ClusterSpec
from trainer.settings.setting import Setting
from trainer.settings.settings import TrainingSettings
from trainer.storage import Outputs


@dataclass(frozen=True, kw_only=True)
class StartingWeights:
    label: str  # imagenet, random, a file's name, or "as built" where a program does not say
    path: Path | None = None  # None: the model's initial values
    exported: Path | None = None  # the prefix of variables that replace the model's initial values
    because: str = ""  # why these, if that needs a reason
    is_fallback: bool = False  # others were requested, which is a warning in the log


AS_BUILT = StartingWeights(label="as built")


@dataclass(frozen=True, kw_only=True)
class Data:
    """What a workload trains on.

    Attributes:
        evaluation: evaluated after each epoch; None for no evaluation.
        name: in events and refusals.
        description: more members of export.json, such as `class_names`.
        unchanged: what must be the same in all attempts of a run, by name; checkpoints record it.
        weights: what the model starts from, of a function that says whether there is a checkpoint. Called where a model
            is built to be trained. Where replicas disagree, all start without a file.
    """

    training: Examples
    evaluation: Examples | None = None
    name: str = "data"
    description: Mapping[str, Any] = field(default_factory=dict)
    unchanged: Mapping[str, str] = field(default_factory=dict)
    weights: Callable[[Callable[[], bool]], StartingWeights] = lambda _: AS_BUILT

    def with_counts(self) -> "Data":
        """With the numbers of examples. Called once the strategy exists; raises Unusable for a split that cannot be used."""
        training = counted_examples(self.training, "training")
        evaluation = self.evaluation and counted_examples(self.evaluation, "evaluation")
        return replace(self, training=training, evaluation=evaluation)


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """One attempt of a run on this replica. `data` and `weights` are set before the workload's `build` is called."""

    workload: "Workload"
    settings: TrainingSettings
    cluster: ClusterSpec
    outputs: Outputs
    environment: Mapping[str, str]
    name: str = ""  # of the workload; empty where a program has none
    flags: Mapping[str, Any] = field(default_factory=dict)  # values of the workload's own, by name
    loaded: Data | None = None
    weights: StartingWeights = AS_BUILT

    @property
    def data(self) -> Data:
        assert self.loaded is not None, "the first function of a workload that is called is `data`"  # noqa: S101
        return self.loaded

    @property
    def unchanged(self) -> dict[str, str]:
        """What must not change between the attempts of a run; its checkpoints record it."""
        name = {"--workload": self.name} if self.name else {}
        return {**name, **self.data.unchanged}

    def with_data(self) -> "TrainingRun":
        """With what the workload's `data` returns, not counted yet. Raises Unusable as that does."""
        return replace(self, loaded=self.workload.data(self))


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model, its data, and the defaults of its settings. All functions get the run.

    Attributes:
        build: returns the compiled model, of tf.keras or keras. Called in the strategy's scope, by every replica that
            builds one: must make the same one each time. Raises Unusable if the flags or the data do not fit it.
        data: returns the Data. Called first, before the strategy exists: TensorFlow allows no operation then, so
            those belong into the functions of Examples. Raises Unusable without data.
        flags: its own settings, which become flags and `run.flags`, by name.
        defaults: of common settings, by name.
        callbacks: returns Keras callbacks; called by every replica that trains, with the run.
        serving: of the run and the trained model, the functions to export by name of signature, each a tf.function
            with an input signature. None: one that takes what the model takes.
        mirrored: on a single machine it trains with MirroredStrategy, whatever the number of devices.
    """

    build: Callable[[TrainingRun], Any]
    data: Callable[[TrainingRun], Data]
    flags: Mapping[str, Setting] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    callbacks: Callable[[TrainingRun], Sequence[Any]] = lambda _: ()
    serving: Callable[[TrainingRun, Any], Mapping[str, Any]] | None = None
    mirrored: bool = False
