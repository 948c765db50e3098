"""Checks that every account has the permissions that the deployment grants it, and names missing bindings.

`testIamPermissions` answers for its caller only, so each account is tested as itself where the user may
impersonate it; elsewhere the deployment's bindings are compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus

from trainmaster.deploy.doctor.deployment import ExaminedDeployment, Expected, GrantTarget
from trainmaster.deploy.doctor.finding import DoctorFinding, failed_finding, ok, unknown
from trainmaster.deploy.doctor.questions import AskRefusedError, Questions
from trainmaster.deploy.doctor.repair import bind, redeploy

AT_ONCE = 8
ACT_AS = "roles/iam.serviceAccountTokenCreator"


def account_findings(
    deployment: ExaminedDeployment, questions: Questions, expected: Iterable[Expected]
) -> list[DoctorFinding]:
    """One finding per account, in the order of the grants."""
    by_account: dict[str, list[Expected]] = defaultdict(list)
    for each in expected:
        by_account[each.email].append(each)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        rows = by_account.values()
        return list(pool.map(lambda grants: _of_account(deployment, questions, grants), rows))


def _of_account(
    deployment: ExaminedDeployment, questions: Questions, grants: Sequence[Expected]
) -> DoctorFinding:
    first = grants[0]
    token, cannot = "", "an account managed by Google cannot be impersonated"
    if not first.is_agent:
        try:
            token = questions.token(first.email)
        except AskRefusedError as refused:
            cannot = f"you may not act as it ({ACT_AS} on it): {refused}"
    account = _Account(deployment=deployment, questions=questions, token=token, grants=grants)
    return account.finding(cannot)


@dataclass(frozen=True, kw_only=True)
class _Account:
    deployment: ExaminedDeployment
    questions: Questions
    token: str
    grants: Sequence[Expected]

    def finding(self, cannot: str) -> DoctorFinding:
        """`cannot`: without a token, why the account's own permissions cannot be tested."""
        check = f"permissions of {self.grants[0].email}"
        lacks: list[str] = []
        repairs: list[str] = []
        open_questions: list[str] = []
        for grant in self.grants:
            try:
                lack = self._lack(grant)
            except AskRefusedError as refused:
                open_questions.append(f"{grant.role} on {_thing_text(grant.thing)}: {refused}")
                continue
            if lack is not None:
                lacks.append(lack[0])
                repairs += lack[1:]
        how = "" if self.token else f"; judged by its bindings only, because {cannot}"
        if lacks:
            rest = f"; not checked: {'; '.join(open_questions)}" if open_questions else ""
            return failed_finding(
                check,
                f"{'; '.join(lacks)}{how}{rest}",
                *repairs,
                f"or all at once: {redeploy(self.deployment)}",
            )
        if open_questions:
            return unknown(check, f"{'; '.join(open_questions)}{how}")
        return ok(check, f"{len(self.grants)} of {len(self.grants)} grants are in place{how}")

    def _lack(self, grant: Expected) -> Sequence[str] | None:
        """What is missing of the grant, then the commands that grant it; None if nothing is missing.

        Raises:
            AskRefusedError: the service answers neither for permissions nor for bindings.
        """
        command = bind(self.deployment, grant.thing, grant.member, grant.role)
        # An object's permissions cannot be tested where the bucket alone has a policy.
        if self.token and grant.permissions and grant.thing.kind != "object":
            try:
                held = self.questions.held_permissions(grant.thing, grant.permissions, self.token)
            except AskRefusedError as refused:
                if refused.status == HTTPStatus.NOT_FOUND:
                    return [f"there is no {_thing_text(grant.thing)}"]
                # Some resources do not support testing some permissions, although a role on them grants these.
            else:
                missing = ", ".join(each for each in grant.permissions if each not in held)
                return [f"{missing} missing on {_thing_text(grant.thing)}", command] if missing else None
        if self._is_bound(grant):
            return None
        return [f"{grant.role} is not bound on {_thing_text(grant.thing)}", command]

    def _is_bound(self, grant: Expected) -> bool:
        things = {grant.thing, self.deployment.project_thing}
        refusal: AskRefusedError | None = None
        for thing in sorted(things, key=lambda thing: thing.kind == "project"):
            try:
                members = self.questions.policy(thing).get(grant.role, frozenset())
            except AskRefusedError as refused:
                refusal = refused
                continue
            if grant.member in members:
                return True
        if refusal is not None:
            raise refusal
        return False


def _thing_text(thing: GrantTarget) -> str:
    return f"{thing.kind} {thing.name}"
