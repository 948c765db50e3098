"""`trainmaster rules`: list, show, apply, fire, pause, resume and remove retraining rules."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.runs.following import order_survives_interrupt
from trainmaster.cli.verb import (
    confirm_removal,
    output_option,
    print_for_programs,
    print_names,
    says_where,
    takes_context,
    takes_context_to_change,
    takes_include,
    takes_team,
    talk,
    wait_option,
)
from trainmaster.client.clients import Clients
from trainmaster.orchestrator.core.names import in_team

if TYPE_CHECKING:
    from trainmaster.client.rules.found_rule import FoundRule
    from trainmaster.client.submission.examination import Examination
    from trainmaster.orchestrator.core.retraining.rule import Rule
    from trainmaster.orchestrator.core.retraining.state import RuleStatus

_WAIT = wait_option(120.0, "how long to wait for the service's answer")


@click.group()
def rules() -> None:
    """List, check and change the rules that start runs. RULE is a rule's id, or its file's name."""


@rules.command(short_help="List the rules: states, counts, times and last firings.")
@output_option()
@takes_context
def ls(clients: Clients, output: str) -> int:
    """List the rules: what they wait for, whether they are in force, and when each fired last and fires next."""
    from trainmaster.cli.rules.screens import print_rules
    from trainmaster.client.rules.listing import list_rules

    found, now = list_rules(clients), datetime.now(UTC)
    names = (rule.name for rule in found)
    if not print_for_programs(output, lambda: [rule.document(now) for rule in found], names):
        print_rules(found, now)
        if not found:
            talk(f"No rules in {clients.context.title}. Add one: trainmaster rules apply FILE")
    return ExitStatus.DONE


@rules.command(short_help="Show RULE: its document, its status and its counts.")
@click.argument("rule")
@output_option()
@takes_team
@takes_context
def show(clients: Clients, rule: str, output: str) -> int:
    """Show RULE: its document, its status, and what it has counted so far."""
    from trainmaster.cli.rules.screens import print_rule
    from trainmaster.client.rules.listing import find_rule

    found, now = find_rule(clients, rule), datetime.now(UTC)
    if not print_for_programs(output, lambda: found.document(now), [found.name]):
        print_rule(found, now)
    return ExitStatus.DONE


@rules.command(short_help="Check rules, put them in force, and print their states.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--prune", is_flag=True, help="FILE is a folder: also remove every rule that it lacks")
@click.option("--plan", "plans", is_flag=True, help="with --prune: only show what would change")
@click.option("--allow-empty", is_flag=True, help="with --prune: remove every rule if the folder has none")
@click.option("--yes", is_flag=True, help="with --prune: do not ask")
@takes_include
@_WAIT
@takes_team
@takes_context_to_change
def apply(
    clients: Clients,
    files: tuple[str, ...],
    *,
    prune: bool,
    plans: bool,
    allow_empty: bool,
    yes: bool,
    include: tuple[str, ...],
    wait_s: float,
) -> int:
    """Check the rules in each FILE, put them in force, and print the state of each.

    All files are checked first, with the service's own checks; if any is faulty, every fault is printed and nothing is
    changed. A file with the name of an earlier one takes its place, wherever the two are, and ends its pause unless the
    file has `enabled: false`. If it replaces the rule for another model, the command says so. The script of a rule's
    request, `script: {file: …}`, is packed and uploaded as submit does it.

    With --prune, the rules, or those of your team, become those of one folder. Each change is shown before any is made, a
    rule whose file is the same is left alone, and none is removed if the service refuses one of the others.

    Exit status: 0 accepted, 2 refused, 5 the service has not answered in time.
    """
    from trainmaster.cli.faults import problem_lines
    from trainmaster.client.rules.changing import examined_rules
    from trainmaster.client.submission.edits import Edits
    from trainmaster.client.submission.send import check_names
    from trainmaster.client.submission.source import read_source
    from trainmaster.client.submission.terms import deployed_terms

    if not prune and (plans or allow_empty or yes):
        raise click.UsageError("--plan, --allow-empty and --yes are for --prune.")
    if prune and len(files) != 1:
        raise click.UsageError("--prune takes one folder with all rules.")
    found = _rule_files_in(files[0], may_be_empty=allow_empty) if prune else files
    terms = deployed_terms(clients)
    sources = [read_source(file, sys.stdin.buffer) for file in dict.fromkeys(found)]
    rules = examined_rules(clients, terms, sources, Edits(include=include))
    if problems := [line for rule in rules for line in problem_lines(rule)]:
        talk("\n".join(problems))
        raise Stop(ExitStatus.USAGE, "Nothing was changed.")
    check_names(rules)
    if prune:
        return _make_equal(clients, rules, terms.team, wait_s, plans=plans, yes=yes)
    return _apply_rules(clients, rules, terms.team, wait_s)


def _rule_files_in(folder: str, *, may_be_empty: bool) -> list[str]:
    """The paths of the rules in the folder, sorted; no hidden or temporary file."""
    from trainmaster.orchestrator.core.names import RULES_PREFIX, is_rule_object

    if not folder:
        raise click.UsageError("--prune takes a folder, and its name is empty.")
    try:
        paths = sorted(each for each in Path(folder).iterdir() if is_rule_object(RULES_PREFIX + each.name))
    except OSError as error:
        raise click.UsageError(f"--prune takes a folder, and {folder} is none: {error.strerror}.") from error
    if strange := [str(path) for path in paths if not path.is_file()]:
        raise click.UsageError(f"{', '.join(strange)}: expected files. Rename or remove what is none.")
    if not paths and not may_be_empty:
        raise click.UsageError(
            f"{folder} has no rule, so all would be removed. If you mean it: --allow-empty"
        )
    return [str(path) for path in paths]


def _make_equal(
    clients: Clients,
    rules: Sequence["Examination"],
    team: str | None,
    wait_s: float,
    *,
    plans: bool,
    yes: bool,
) -> int:
    """Show every change, ask, and make them: the removals last, and only if the service accepts the rest."""
    from trainmaster.client.rules.changing import remove_rule, rule_changes

    changes, title = rule_changes(clients, rules, team), clients.context.title
    talk("\n".join(changes.lines) or f"The rules in {title} are the same already.")
    if plans or not changes.lines:
        return ExitStatus.DONE
    confirm_removal(f"Make these changes in {title}?", "--prune", yes=yes)
    status = _apply_rules(clients, changes.wanted, team, wait_s) if changes.wanted else ExitStatus.DONE
    if status != ExitStatus.DONE:
        return status
    for each in changes.removed:
        says_where(clients, f"Removing {each.dropped_name}")
        remove_rule(clients, each)
    return ExitStatus.DONE


def _apply_rules(clients: Clients, rules: Sequence["Examination"], team: str | None, wait_s: float) -> int:
    from trainmaster.cli.submit.script_notes import upload_script
    from trainmaster.client.rules.changing import data_note, drop_rule
    from trainmaster.client.rules.listing import read_book

    says_where(clients, f"Applying {len(rules)} rules" if len(rules) > 1 else "Applying a rule")
    in_force = {rule.dropped_name: rule for rule in read_book(clients).rules}
    noted, statuses = set[Path](), list["RuleStatus"]()
    for each in rules:
        _say_checked(each)
        if note := data_note(each):
            talk(note)
        for packed in each.archives:
            upload_script(clients, packed, team, noted)
        statuses.append(drop_rule(clients, each.object_name, each.content, timeout_s=wait_s))
        _say_applied(each, statuses[-1], in_force.get(each.object_name))
    _warn_of_inert_rules(clients, statuses)
    return ExitStatus.USAGE if any(status.state == "refused" for status in statuses) else ExitStatus.DONE


def _say_checked(rule: "Examination") -> None:
    """Say what its author may have meant otherwise, and the next times of its schedules."""
    from trainmaster.cli.faults import WARNING, fault_lines
    from trainmaster.client.shown.rule_lines import when_lines

    times = when_lines(rule.rule, datetime.now(UTC)) if rule.rule is not None else ()
    named = (f"{rule.faulty}: {line}" for line in times)
    if lines := [*fault_lines(rule.warnings, rule.faulty, WARNING), *named]:
        talk("\n".join(lines))


def _say_applied(rule: "Examination", status: "RuleStatus", before: "Rule | None") -> None:
    """`before` is the rule whose place it took."""
    from trainmaster.client.rules.found_rule import state_word

    print_names([f"{status.rule_id or status.dropped_name} {state_word(status.state)}"])
    if status.problems or status.reason:
        talk("\n".join(status.problems or [status.reason or ""]))
    if before is None or status.state == "refused":
        return
    if rule.rule is not None and rule.rule.model_name != before.model_name:
        talk(
            f"{rule.title} replaces the rule for {in_team(before.team, before.model_name)}, whose file had the same name. "
            "To have both rules, rename one of the files, and apply both."
        )
    if status.state == "accepted" and not before.document.get("enabled", True):
        talk(
            f"{status.rule_id} was paused, and is active again: {rule.title} does not set `enabled: false`. "
            f"Pause it: trainmaster rules pause {status.rule_id}"
        )


def _warn_of_inert_rules(clients: Clients, statuses: Sequence["RuleStatus"]) -> None:
    from trainmaster.cli.rules.inert import inert_notes

    accepted = [status.dropped_name for status in statuses if status.state == "accepted"]
    for note in inert_notes(clients, accepted) if accepted else ():
        talk(f"Warning: {note}")


@rules.command(short_help="Fire RULE now, and print the id of its run.")
@click.argument("rule")
@_WAIT
@takes_team
@takes_context_to_change
def fire(clients: Clients, rule: str, wait_s: float) -> int:
    """Fire RULE now, and print the id of the run that it starts.

    The rule's `when` needs the condition `manual: {}`. Its limits apply.

    Exit status: 0 fired, 1 removed, or held back by a limit or its last run, 2 refused, 3 there is no such rule, 5 the
    service has not answered in time.
    """
    from trainmaster.client.rules.changing import RuleHeld, RuleRemoved, fire_rule
    from trainmaster.client.rules.listing import find_rule

    found = find_rule(clients, rule)
    says_where(clients, f"Firing {found.name}")
    try:
        with order_survives_interrupt(f"trainmaster rules show {found.name}"):
            print_names([fire_rule(clients, found, timeout_s=wait_s)])
    except RuleRemoved as removed:
        raise Stop(ExitStatus.FINDING, str(removed)) from removed
    except RuleHeld as held:
        raise Stop(
            ExitStatus.FINDING, f"{found.name} is held back: {held}. See: trainmaster rules show {found.name}"
        ) from held
    return ExitStatus.DONE


@rules.command(short_help="Stop each RULE from firing, and print its state.")
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@_WAIT
@takes_context_to_change
def pause(clients: Clients, rules: tuple[str, ...], wait_s: float) -> int:
    """Stop each RULE from firing, and print its state: sets `enabled: false` in its file, and drops the file again.

    Its schedule, signals and orders are ignored until it is resumed, and objects that arrive are not counted. A run that
    it has started continues. If one of several RULEs is unknown or cannot be paused, none is. One that is paused already
    stays as it is.

    Exit status: 0 paused, 2 refused, 3 there is no such rule, 5 the service has not answered in time.
    """
    return _set_enabled(clients, rules, wait_s, enabled=False)


@rules.command(short_help="Let each RULE fire again, and print its state.")
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@_WAIT
@takes_context_to_change
def resume(clients: Clients, rules: tuple[str, ...], wait_s: float) -> int:
    """Let each RULE fire again, after `pause` or quarantine, and print its state.

    Sets `enabled: true` in its file, and drops the file again. What was due meanwhile is not made up for. If one of
    several RULEs is unknown or cannot be resumed, none is. One that is not paused stays as it is.

    Exit status: 0 resumed, 2 refused, 3 there is no such rule, 5 the service has not answered in time.
    """
    return _set_enabled(clients, rules, wait_s, enabled=True)


def _set_enabled(clients: Clients, names: Sequence[str], wait_s: float, *, enabled: bool) -> int:
    from trainmaster.client.rules.changing import is_already, pause_refusal, set_enabled
    from trainmaster.client.rules.found_rule import state_word

    found = _find_rules(clients, names)
    waiting = [each for each in found if not is_already(each, enabled=enabled)]
    if refusals := [text for each in waiting if (text := pause_refusal(each, enabled=enabled))]:
        raise Stop(ExitStatus.USAGE, "\n".join(refusals))
    for each in found:
        if each not in waiting:
            talk(f"{each.name} is {'not paused' if enabled else 'paused already'}.")
            print_names([f"{each.name} {each.standing}"])
            continue
        says_where(clients, f"{'Resuming' if enabled else 'Pausing'} {each.name}")
        status = set_enabled(clients, each, enabled=enabled, timeout_s=wait_s)
        print_names([f"{each.name} {state_word(status.state)}"])
    return ExitStatus.DONE


def _find_rules(clients: Clients, names: Sequence[str]) -> "list[FoundRule]":
    """Each of the rules once; before any is changed, so that an unknown one changes none."""
    from trainmaster.client.rules.listing import find_rule

    found = (find_rule(clients, name) for name in names)
    return list({each.dropped_name: each for each in found}.values())


@rules.command()
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@click.option("--yes", is_flag=True, help="do not ask")
@takes_team
@takes_context_to_change
def rm(clients: Clients, rules: tuple[str, ...], yes: bool) -> int:
    """Delete the file of each RULE. The rule is retired within a minute; the runs that it has started continue.

    Until then an image push, an alert or an upstream run may still fire it: `rules pause` before stops it at once. If one
    of several RULEs is unknown, none is removed.
    """
    from trainmaster.client.rules.changing import remove_rule

    found = _find_rules(clients, rules)
    files = ", ".join(each.dropped_name for each in found)
    confirm_removal(f"Remove {files} in {clients.context.title}?", "Removing a rule", yes=yes)
    for each in found:
        says_where(clients, f"Removing {each.dropped_name}")
        remove_rule(clients, each)
        print_names([each.name])
    return ExitStatus.DONE
