"""`trainmaster again`: submit the request of a run once more."""

import click

from trainmaster.cli.submit.options import Following, WithArguments, following_options, set_option, yes_option
from trainmaster.cli.verb import JSON, NAME, YAML, output_option, takes_context_to_change
from trainmaster.client.clients import Clients


@click.command(cls=WithArguments)
@click.argument("run")
@set_option
@click.option("--continue", "continues", is_flag=True, help="begin with the checkpoints that RUN has left")
@following_options
@yes_option
@output_option(NAME, JSON, YAML)
@takes_context_to_change
def again(
    clients: Clients,
    run: str,
    *,
    arguments: tuple[str, ...],
    settings: tuple[str, ...],
    continues: bool,
    yes: bool,
    following: Following,
    output: str,
) -> int:
    """Submit the request of RUN once more, as its user wrote it but for --set, and print the id of the new run.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message. A file that was edited since, or that
    only has the name of the one that started a run, is refused, and the ids are printed. The text that the ledger keeps
    is checked as the deployment checks requests now, and uploaded below requests/again/, where it replaces no file of
    yours. RUN stays as it is. A packed script runs as it was. Of a rule's run it is the request that the rule filled in;
    the new run does not count as a firing of the rule. The words behind -- replace the program's arguments.

    With --continue, the checkpoints of RUN are copied to the new run's AIP_CHECKPOINT_DIR before a script or the trainer
    starts there; other programs read them from the variable TRAINMASTER_CONTINUE_FROM.

    Exit status: 0 submitted, or with --wait or --logs succeeded; 1 the run ended in another way; 2 refused; 3 there is
    no such run; 5 not ended in time. Ctrl-C ends this command, not the run.
    """
    from trainmaster.cli.submit.submit_verb import send_and_follow
    from trainmaster.client.find import find_run
    from trainmaster.client.submission.again import continuing, request_again
    from trainmaster.client.submission.edits import Edits
    from trainmaster.client.submission.settings import parse_settings

    if following.faults:
        raise click.UsageError("\n".join(following.faults))
    changes = parse_settings(settings)
    if continues and any(each.path[:1] == ("continue_from",) for each in changes):
        raise click.UsageError("--continue and --set continue_from both name checkpoints. Leave one out.")
    found = find_run(clients, run, is_to_change=True)
    more = continuing(clients, found) if continues else ()
    edits = Edits(args=arguments, settings=(*changes, *more))
    request = request_again(clients, found, edits)
    return send_and_follow(clients, [request], following, output=output, yes=yes)
