"""Registers models in Vertex AI's Model Registry, and keeps the alias `champion` on the current champion's version.

An upload is a long operation without a request id, and no attempt waits for it: each one looks for the version by the
run's label first. Two attempts at once may add two versions of one run; the alias then names the lower.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from trainmaster.orchestrator.core.champions.promotion import reign_of
from trainmaster.orchestrator.core.champions.registration import (
    ALIAS,
    ModelVersion,
    upload_of,
    with_registered,
)
from trainmaster.orchestrator.core.completion.steps import CHAMPION, REGISTRY, is_over
from trainmaster.orchestrator.core.errors import GenerationMoved, ServiceFailed
from trainmaster.orchestrator.core.names import registry_model_id
from trainmaster.orchestrator.core.policy.registry import Registry, RegistryMode
from trainmaster.orchestrator.core.requests.spec import JobSpec, spec_from
from trainmaster.orchestrator.core.runs.drop_status import failure_text
from trainmaster.orchestrator.core.runs.end import Completion, Model, Registration, RegistrationState
from trainmaster.orchestrator.core.runs.record import RunRecord, short_reason
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.completion.smoke import smoke_test, smoke_text
from trainmaster.orchestrator.flows.lifecycle.finish import End
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.stores.store import RACES_MAX

UPLOADED_WITHIN = timedelta(hours=1)
"""After that an upload that left no version is repeated. It takes minutes; the service states no bound."""


def register_model(end: End) -> str | None:
    """The step `registry`: add a version for the run's model if the policy asks for one, and move the alias to a champion's."""
    registry, record = end.services.policy().registry, end.record
    model, request = record.model, record.request
    if record.state is not RunState.SUCCEEDED or model is None or request is None:
        return None
    is_off = registry.mode is RegistryMode.OFF
    # An approval may take days: the policy of then counts.
    if CHAMPION in end.waiting or (CHAMPION in end.failed and not is_off):
        return "the registry follows the comparison with the champion"
    if is_off:
        return None
    completion = end.noted_in(record).completion or Completion()
    is_champion = completion.champion is not None and completion.champion.promoted
    if registry.mode is RegistryMode.CHAMPIONS and not is_champion:
        return None
    known = completion.registration or Registration(state=RegistrationState.FAILED)
    attempt = _Attempt(
        services=end.services,
        record=record,
        spec=spec_from(request.document),
        model=model,
        registry=registry,
        is_champion=is_champion,
    )
    is_tried = registry.smoke and is_champion
    waits = smoke_test(end, attempt.spec, model, attempt.files_uri) if is_tried else None
    smoke = smoke_text(end.record)
    try:
        end.registration = replace(attempt.register(known), smoke=smoke)
    except ServiceFailed as failed:  # an upload that is under way stays known
        failure = failure_text(failed)
        end.registration = replace(known, state=RegistrationState.FAILED, error=failure, smoke=smoke)
        raise
    if end.registration.state is RegistrationState.FAILED:
        raise ServiceFailed("Vertex AI", "upload the model", str(end.registration.error))
    is_done = end.registration.state is RegistrationState.REGISTERED
    return waits if is_done else "the model is being uploaded to the Model Registry"


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """One look at the version of a run."""

    services: Services
    record: RunRecord
    spec: JobSpec
    model: Model
    registry: Registry
    is_champion: bool

    def register(self, known: Registration) -> Registration:
        """What is known about the version after this attempt.

        Raises:
            ServiceFailed: the service refused.
        """
        run_id, name, team = self.record.run_id, self.spec.model_name, self.record.source.team
        deployment = self.services.target.deployment
        model_id = registry_model_id(name, team, deployment)
        versions = self.services.model_registry.versions_of_run(model_id, run_id)
        if versions:
            aliased = align_alias(self.services, name, team) if self.is_champion else None
            is_aliased = aliased is not None and aliased.number in {one.number for one in versions}
            return Registration(
                state=RegistrationState.REGISTERED,
                model=versions[0].model,
                version=str(versions[0].number),
                alias=ALIAS if is_aliased else None,
            )
        now = self.services.clock.now()
        if known.operation is not None and known.since is not None:
            if reason := self.services.model_registry.why_upload_failed(known.operation):
                return Registration(state=RegistrationState.FAILED, error=short_reason(reason))
            if now < known.since + UPLOADED_WITHIN:
                return replace(known, state=RegistrationState.UPLOADING, error=None)
        upload = upload_of(
            self.record, self.spec, self.model, self.files_uri(), self.registry, deployment=deployment
        )
        operation = self.services.model_registry.upload(upload, is_first=versions is None)
        return Registration(state=RegistrationState.UPLOADING, operation=operation, since=now)

    def files_uri(self) -> str:
        """The copy of a champion, which no job can change; of another model, where its run saved it."""
        team = self.record.source.team
        champion = self.services.champions.find(self.spec.model_name, team) if self.is_champion else None
        reign = reign_of(champion, self.record.run_id) if champion is not None else None
        return reign.model_uri if reign is not None else self.model.uri


def align_alias(services: Services, model_name: str, team: str | None) -> ModelVersion | None:
    """Move the alias to the version of the current champion, and say so in its document; None if it has no version.

    While the champion is uploaded, the alias stays where it is, and where the policy asks for smoke tests until the champion has passed its own. Repeated if another champion comes meanwhile. Safe to repeat, and at the same time.

    Raises:
        ServiceFailed: the service refused.
        GenerationMoved: the document kept changing.
    """
    model_id = registry_model_id(model_name, team, services.target.deployment)
    for _ in range(RACES_MAX):
        champion = services.champions.find(model_name, team)
        if champion is None or champion.current is None:
            return None
        run_id = champion.current.run_id
        held = services.ledger.find(run_id)
        is_done = held is None or is_over(held.record, REGISTRY)
        smoke = held.record.completion.smoke if held is not None and held.record.completion else None
        # Without a smoke test after that step, the policy asked for none at that time.
        if services.policy().registry.smoke and not (smoke.scores if smoke is not None else is_done):
            return None
        version = _give_alias(services, model_id, run_id, keeps_other=not is_done)
        note = partial(with_registered, run_id=run_id, version=version)
        if services.champions.update(model_name, note, team) is not None:
            return version
    raise GenerationMoved(services.champions.uri(model_name, team), 0)


def _give_alias(services: Services, model_id: str, run_id: str, *, keeps_other: bool) -> ModelVersion | None:
    """The lowest version of the run, with the alias. Without a version no other has it, unless `keeps_other`."""
    versions = services.model_registry.versions_of_run(model_id, run_id)
    if versions:
        if ALIAS not in versions[0].aliases:
            services.model_registry.change_alias(versions[0], ALIAS)
        return versions[0]
    if keeps_other or versions is None:
        return None
    outdated = services.model_registry.version_with_alias(model_id, ALIAS)
    if outdated is not None:
        services.model_registry.change_alias(outdated, f"-{ALIAS}")
    return None
