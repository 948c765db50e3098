"""The service looks for the model in AIP_MODEL_DIR: does the program put it there?"""

from trainmaster.inspect.checks.examined import Check, Examined, beyond
from trainmaster.inspect.checks.keras_files import iter_keras_saves, repair_of
from trainmaster.inspect.checks.saving import iter_saves
from trainmaster.inspect.checks.survive import SURVIVE, survives
from trainmaster.inspect.finding import Finding, Level, Location, Subject
from trainmaster.inspect.request import Request
from trainmaster.inspect.source.module import last_name
from trainmaster.orchestrator.core.completion.locations import parse_flags

VARIABLE = "AIP_MODEL_DIR"
IN_THE_SDK = "google.cloud.aiplatform.training_utils.environment_variables"
JOB_DIR = {"--job-dir", "--job_dir", "job-dir", "job_dir"}
STARTERS = {"execv", "execvp", "execve", "execvpe", "Popen", "check_call", "run_path"}
REFERENCE = f"$({VARIABLE})"
REPAIR = f'Save to os.environ["{VARIABLE}"].'
PLAIN = f'Save below os.environ["{VARIABLE}"].replace("gs://", "/gcs/", 1); make this folder first.'


def check(examined: Examined) -> Check:
    program, request = examined.program, examined.request
    if request is not None and any(REFERENCE in word for word in request.program.args):
        yield _unexpanded(request)
        return
    if (place := program.mention(VARIABLE)) is not None:
        yield Subject.MODEL_DIR.fine(f"{VARIABLE} is read", place)
        return
    asked = (
        [] if request is None else [*request.program.args, *request.command, *request.program.env.values()]
    )
    by_sdk = any(name.startswith(IN_THE_SDK) for name in program.imported)
    if by_sdk or any(VARIABLE in word for word in (*asked, examined.surroundings.dockerfile)):
        yield Subject.MODEL_DIR.fine(f"{VARIABLE} is passed to the program")
    elif request is not None and _saves_where_named(examined, request):
        yield Subject.MODEL_DIR.fine(
            "The program saves to the request's model_uri", Location(path=request.path)
        )
    elif program.strings & JOB_DIR:
        yield _by_job_dir(examined)
    elif survives(program):
        yield Subject.MODEL_DIR.fine(f"{SURVIVE} saves the model to {VARIABLE}")
    elif not program.is_whole:
        yield Subject.MODEL_DIR.unknown(f"whether {VARIABLE} is read: {beyond(program)}")
    elif program.mention("AIP_") or any(last_name(call.func) in STARTERS for _, call in program.calls()):
        yield Subject.MODEL_DIR.unknown(
            f"whether {VARIABLE} is read: the program builds names dynamically or starts other programs"
        )
    else:
        yield _unread(examined)


def _saves_where_named(examined: Examined, request: Request) -> bool:
    """Whether the program itself names the path of `model_uri`, or has a flag to which the request passes it."""
    if request.spec.model_uri is None:
        return False
    place, strings = request.spec.model_uri.partition("${")[0].rstrip("/"), examined.program.strings
    flags = {flag for flag, value in parse_flags(request.program.args) if place in value}
    return bool(flags & strings) or any(place in text for text in strings)


def _unexpanded(request: Request) -> Finding:
    """According to its documentation, Vertex AI expands references only in values of `env`.

    Source: EnvVar, https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar
    """
    return Subject.MODEL_DIR.fault(
        found=f"The request's args have {REFERENCE}, which reaches the program as it is written",
        place=Location(path=request.path),
        cost="The program saves to a directory of that name on its own machine, which is lost with it.",
        repair=f'Read it in the program: os.environ["{VARIABLE}"], for example as the default of the flag.',
    )


def _unread(examined: Examined) -> Finding:
    save = next(iter_saves(examined), None)
    entry = examined.program.entries[0].shown if examined.program.entries else ""
    return Subject.MODEL_DIR.fault(
        found=f"The program never reads {VARIABLE}" + (f"; `{save.shown}` writes elsewhere" if save else ""),
        place=save.module.place(save.call) if save else Location(path=entry),
        repair=_repair(examined),
    )


def _repair(examined: Examined) -> str:
    """How the program can put its model into the directory, by what it saves with."""
    if (save := next(iter_keras_saves(examined), None)) is not None:
        return repair_of(examined, save)
    # Other frameworks write plain files, which take no gs:// URI.
    return REPAIR if examined.framework == "keras" else PLAIN


def _by_job_dir(examined: Examined) -> Finding:
    """Vertex AI passes only `args`; the `jobDir` of AI Platform Training becomes one of them."""
    request = examined.request
    place = None if request is None else Location(path=request.path)
    given = set() if request is None else {each.partition("=")[0] for each in request.program.args}
    if given & JOB_DIR:
        return Subject.MODEL_DIR.fine("The request passes the program's --job-dir", place)
    why = (
        "only the request's args would pass it" if request is None else "the request does not pass --job-dir"
    )
    found = f"The program reads --job-dir but not {VARIABLE}; {why}"
    level = Level.WARNING if request is None else Level.ERROR
    return Subject.MODEL_DIR.fault(found, place, level=level, repair=_repair(examined))
