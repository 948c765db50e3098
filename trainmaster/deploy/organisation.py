"""Policies of an organisation that stop a deployment, each with its repair.

They are read from Resource Manager, which needs no further API and answers for a project without an organisation too. That
needs the permission orgpolicy.policy.get; without it, nothing is known, and the deployment goes ahead.
Source: https://cloud.google.com/resource-manager/docs/organization-policy/org-policy-constraints (read 2026-11-26)
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from trainmaster.deploy.gcloud import GcloudFailed, described
from trainmaster.deploy.names import SETTINGS, Names, setting

KEYED = ("artifactregistry", "cloudfunctions", "pubsub", "run", "storage")
"""Services whose resources `kms_key` encrypts; policies name them with `.googleapis.com`."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The effective policy of a constraint that lists values. `allowed` empty: every value that is not denied."""

    allowed: frozenset[str]
    denied: frozenset[str]
    denies_all: bool

    @property
    def is_restricted(self) -> bool:
        return self.denies_all or bool(self.allowed) or bool(self.denied)

    def allows(self, value: str) -> bool:
        return (
            not self.denies_all and value not in self.denied and (not self.allowed or value in self.allowed)
        )


def policy_from(answer: Mapping[str, Any]) -> Policy:  # Any: JSON
    """The policy in an answer of getEffectiveOrgPolicy.

    Source: https://cloud.google.com/resource-manager/reference/rest/v1/Policy#ListPolicy (read 2026-11-26)
    """
    listed = answer.get("listPolicy") or {}
    allowed, denied = (
        frozenset(str(each).removeprefix("is:") for each in listed.get(key, ()))
        for key in ("allowedValues", "deniedValues")
    )
    return Policy(allowed=allowed, denied=denied, denies_all=listed.get("allValues") == "DENY")


def _soft_delete_fault(policy: Policy, _: Names) -> str:
    seconds = setting("soft_delete_s") or "0"
    if policy.allows(seconds):
        return ""
    allowed = f"; allowed: {', '.join(sorted(policy.allowed))}" if policy.allowed else ""
    return f"no bucket may keep deleted objects for {seconds} s{allowed}: set soft_delete_s in {SETTINGS}"


def _key_fault(policy: Policy, _: Names) -> str:
    required = [name for name in KEYED if not policy.allows(f"{name}.googleapis.com")]
    if not required or setting("kms_key"):
        return ""
    return (
        f"{', '.join(required)} must use a key of your own: set kms_key = "
        f'"projects/P/locations/REGION/keyRings/R/cryptoKeys/K" in {SETTINGS}'
    )


def _pool_fault(policy: Policy, names: Names) -> str:
    if not policy.is_restricted or setting("build_worker_pool"):
        return ""
    return (
        "the functions may not be built in Cloud Build's own pool: name a private one that is allowed, build_worker_pool = "
        f'"projects/P/locations/{names.region}/workerPools/W" in {SETTINGS}'
    )


def _member_warning(policy: Policy, names: Names) -> str:
    members = sorted({member for team in names.teams.values() for member in team.get("members", ())})
    if not policy.is_restricted or not members:
        return ""
    return (
        f"roles may be granted only to members of {', '.join(sorted(policy.allowed)) or 'some organisations'}, and a member "
        'of another stops the deployment with "do not belong to a permitted customer": check the teams\' members in '
        f"functions/policy.yaml, {', '.join(members)}"
    )


FAULTS: Mapping[str, Callable[[Policy, Names], str]] = {
    "constraints/storage.softDeletePolicySeconds": _soft_delete_fault,
    "constraints/gcp.restrictNonCmekServices": _key_fault,
    "constraints/cloudbuild.allowedWorkerPools": _pool_fault,
}
WARNINGS: Mapping[str, Callable[[Policy, Names], str]] = {
    # It lists customer ids, which members' addresses do not show.
    "constraints/iam.allowedPolicyMemberDomains": _member_warning,
}


def policy_findings(names: Names) -> tuple[list[str], list[str]]:
    """What the policies certainly stop, and what they may stop. Unreadable policies are one warning."""
    constraints = [*FAULTS, *WARNINGS]
    with ThreadPoolExecutor(len(constraints)) as pool:
        answers = dict(
            zip(constraints, pool.map(lambda each: _answer(each, names.project), constraints), strict=True)
        )
    unread = [str(answer) for answer in answers.values() if isinstance(answer, GcloudFailed)]
    policies = {name: policy_from(found) for name, found in answers.items() if isinstance(found, dict)}
    faults, warnings = (
        [
            f"{name}: {said}"
            for name, judge in table.items()
            if name in policies and (said := judge(policies[name], names))
        ]
        for table in (FAULTS, WARNINGS)
    )
    if unread:
        warnings.append(
            f"the organisation's policies were not checked ({unread[0]}): roles/orgpolicy.policyViewer may read them; "
            "docs/how-to/deploy.md, section Organisation policies, lists those that stop a deployment"
        )
    return faults, warnings


def _answer(constraint: str, project: str) -> dict[str, Any] | GcloudFailed:
    try:
        return described(
            "resource-manager", "org-policies", "describe", constraint, f"--project={project}", "--effective"
        )
    except GcloudFailed as failed:
        return failed
