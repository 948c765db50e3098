"""The buckets and folders of buckets that a job's account may read and write, by the grants that the services enforce."""

from collections.abc import Iterator
from pathlib import Path

from trainstack.iam.service import BUCKETS, Grants
from trainstack.jobs.replicas.rootfs import BucketShare

_READ, _WRITE = "storage.objects.get", ("storage.objects.create", "storage.objects.delete")


def shares_of(account: str, grants: Grants | None, buckets: Path) -> tuple[BucketShare, ...] | None:
    """What the account sees of the buckets' directory, outer folders first; None for all of it.

    Creates granted folders that do not exist yet, so that the first job can write there.
    """
    if grants is None:
        return None
    member = f"serviceAccount:{account}"
    names = sorted(entry.name for entry in buckets.iterdir() if entry.is_dir())
    return tuple(share for name in names for share in _find_shares(name, member, grants, buckets))


def _find_shares(bucket: str, member: str, grants: Grants, buckets: Path) -> Iterator[BucketShare]:
    resource = BUCKETS + bucket
    for folder in ("", *_folders(member, resource, grants)):
        if grants.allows(member, _READ, resource, folder):
            (buckets / bucket / folder).mkdir(parents=True, exist_ok=True)
            writable = all(grants.allows(member, permission, resource, folder) for permission in _WRITE)
            yield BucketShare(path=f"{bucket}/{folder}".rstrip("/"), writable=writable)


def _folders(member: str, resource: str, grants: Grants) -> list[str]:
    grants_on = (grant for grant in grants.granted if (grant.member, grant.resource) == (member, resource))
    return sorted({grant.folder for grant in grants_on if grant.folder})
