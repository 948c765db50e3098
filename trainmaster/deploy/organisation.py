"""Policies of an organisation that stop a deployment, each with its repair.

They are read from Resource Manager, which needs no further API and answers for a project without an organisation too. That
needs the permission orgpolicy.policy.get; without it, nothing is known, and the deployment goes ahead.
Source: https://cloud.google.com/resource-manager/docs/organization-policy/org-policy-constraints (read 2026-11-26)
"""

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from trainmaster.deploy.gcloud import GcloudFailed, describe_resource
from trainmaster.deploy.names import SETTINGS, Names, setting

KEYED = ("artifactregistry", "cloudfunctions", "pubsub", "run", "storage")
"""Services whose resources `kms_key` encrypts; policies name them with `.googleapis.com`."""
_OPAQUE = re.compile(r"in:|under:(organizations|folders)/|(under:)?projects/[0-9]")
"""What only the cloud can compare: a value that stands for others, and a project's number with an id."""


@dataclass(frozen=True, kw_only=True)
class OrganisationPolicy:
    """The effective policy of a list constraint; values keep `under:` and `in:`. `allowed` empty: all that is not denied."""

    allowed: frozenset[str]
    denied: frozenset[str]
    denies_all: bool

    @property
    def is_restricted(self) -> bool:
        return self.denies_all or bool(self.allowed) or bool(self.denied)

    def allows(self, value: str) -> bool | None:
        """None: only the organisation knows, because it depends on what an `under:` or `in:` contains."""
        denied = self.denies_all or _coverage_of(value, self.denied)
        allowed = not self.allowed or _coverage_of(value, self.allowed)
        return False if denied or allowed is False else None if denied is None else allowed


def _coverage_of(value: str, listed: frozenset[str]) -> bool | None:
    if any(value == each or value.startswith(f"{each.removeprefix('under:')}/") for each in listed):
        return True
    return None if listed and any(_OPAQUE.match(each) for each in (*listed, value)) else False


def policy_from(answer: Mapping[str, Any]) -> OrganisationPolicy:  # Any: JSON
    """The policy in an answer of getEffectiveOrgPolicy.

    Source: https://cloud.google.com/resource-manager/reference/rest/v1/Policy#ListPolicy (read 2026-11-26)
    """
    listed = answer.get("listPolicy") or {}
    allowed, denied = (
        frozenset(str(each).removeprefix("is:") for each in listed.get(key, ()))
        for key in ("allowedValues", "deniedValues")
    )
    return OrganisationPolicy(allowed=allowed, denied=denied, denies_all=listed.get("allValues") == "DENY")


def _soft_delete_fault(policy: OrganisationPolicy, _: Names) -> str:
    seconds = setting("soft_delete_s") or "0"
    if policy.allows(seconds) is not False:
        return ""
    return f"no bucket may keep deleted objects for {seconds} s{_allowed_text(policy)}: set soft_delete_s in {SETTINGS}"


def _key_fault(policy: OrganisationPolicy, _: Names) -> str:
    required = [name for name in KEYED if policy.allows(f"{name}.googleapis.com") is False]
    if not required or setting("kms_key"):
        return ""
    return (
        f"{', '.join(required)} must use a key of your own: set kms_key = "
        f'"projects/P/locations/REGION/keyRings/R/cryptoKeys/K" in {SETTINGS}'
    )


def _pool_fault(policy: OrganisationPolicy, names: Names) -> str:
    pool = setting("build_worker_pool")
    if not policy.is_restricted or (pool and policy.allows(pool) is not False):
        return ""
    where = "Cloud Build's own pool" if pool is None else f"{pool}{_allowed_text(policy)}"
    return (
        f"the functions may not be built in {where}: name a private one that is allowed, build_worker_pool = "
        f'"projects/P/locations/{names.region}/workerPools/W" in {SETTINGS}'
    )


def _pool_warning(policy: OrganisationPolicy, _: Names) -> str:
    pool = setting("build_worker_pool")
    if pool is None or policy.allows(pool) is not None:
        return ""
    return f"only your organisation knows whether the functions may be built in {pool}{_allowed_text(policy)}: ask its administrator"


def _allowed_text(policy: OrganisationPolicy) -> str:
    return f"; allowed: {', '.join(sorted(policy.allowed))}" if policy.allowed else ""


def _member_warning(policy: OrganisationPolicy, names: Names) -> str:
    members = sorted({member for team in names.teams.values() for member in team.get("members", ())})
    if not policy.is_restricted or not members:
        return ""
    return (
        f"roles may be granted only to members of {', '.join(sorted(policy.allowed)) or 'some organisations'}, and a member "
        'of another stops the deployment with "do not belong to a permitted customer": check the teams\' members in '
        f"functions/policy.yaml, {', '.join(members)}"
    )


FAULTS: Mapping[str, Callable[[OrganisationPolicy, Names], str]] = {
    "constraints/storage.softDeletePolicySeconds": _soft_delete_fault,
    "constraints/gcp.restrictNonCmekServices": _key_fault,
    "constraints/cloudbuild.allowedWorkerPools": _pool_fault,
}
WARNINGS: Mapping[str, Callable[[OrganisationPolicy, Names], str]] = {
    "constraints/cloudbuild.allowedWorkerPools": _pool_warning,
    # It lists customer ids, which members' addresses do not show.
    "constraints/iam.allowedPolicyMemberDomains": _member_warning,
}


def policy_findings(names: Names) -> tuple[list[str], list[str]]:
    """What the policies certainly stop, and what they may stop. Unreadable policies are one warning."""
    constraints = {**FAULTS, **WARNINGS}
    with ThreadPoolExecutor(len(constraints)) as pool:
        found = pool.map(lambda each: _answer(each, names.project), constraints)
        answers = dict(zip(constraints, found, strict=True))
    unread = [str(answer) for answer in answers.values() if isinstance(answer, GcloudFailed)]
    policies = {name: policy_from(said) for name, said in answers.items() if isinstance(said, dict)}
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
            "docs/reference/deployment.md, section Organisation policies, lists those that stop a deployment"
        )
    return faults, warnings


def _answer(constraint: str, project: str) -> dict[str, Any] | GcloudFailed:
    try:
        return describe_resource(
            "resource-manager", "org-policies", "describe", constraint, f"--project={project}", "--effective"
        )
    except GcloudFailed as failed:
        return failed
