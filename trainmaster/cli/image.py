"""`trainmaster image`: build the trainer's image on this machine."""

import subprocess

import click

from trainmaster.deploy.local_image import BASE, DEBIAN, TRAINER, VARIANTS, CannotBuildError, build_image


@click.command()
@click.option("--base", metavar="IMAGE", help=f"default {BASE}, built first where it is missing")
@click.option(
    "--variant",
    type=click.Choice(VARIANTS),
    default="cpu",
    show_default=True,
    help="cuda: for machines with GPUs",
)
@click.option("--tag", default=TRAINER, show_default=True, metavar="IMAGE")
@click.option("--mirror", default=DEBIAN, show_default=True, metavar="URL", help="Debian's packages")
def image(base: str | None, variant: str, tag: str, mirror: str) -> int:
    """Build the trainer's image on this machine, on a small base of Debian packages unless another is named.

    Needs buildah or podman on the PATH, and debootstrap and root for the default base (on Debian: apt-get install
    --no-install-recommends buildah debootstrap). No daemon, and no privileges for the containers.
    """
    try:
        build_image(base=base, variant=variant, tag=tag, mirror=mirror)
    except CannotBuildError as fault:
        raise click.ClickException(str(fault)) from fault
    except subprocess.CalledProcessError as fault:
        raise click.ClickException(f"{fault.cmd[0]} exited with status {fault.returncode}.") from fault
    return 0
