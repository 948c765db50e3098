"""The service looks for the model in AIP_MODEL_DIR: does the program name it?"""

from trainmaster.inspect.finding import FindingSubject, SourceLocation
from trainmaster.inspect.start import Check, Examined

VARIABLE = "AIP_MODEL_DIR"
REFERENCE = f"$({VARIABLE})"
OTHER_WAYS = ("AIP_", "job-dir", "job_dir")
"""In a text of a program that builds the variable's name, or that gets its path as AI Platform's programs did."""
OTHER_READERS = ("google.cloud.aiplatform", "os.exec", "os.system", "subprocess", "runpy", "trainer.survive")
"""Modules that read the variable, or with which a program starts others, which may."""


def check(examined: Examined) -> Check:
    source, request = examined.source, examined.request
    given = (
        () if request is None else (*request.program.args, *request.command, *request.program.env.values())
    )
    if request is not None and any(REFERENCE in word for word in request.program.args):
        # Vertex AI expands references only in values of `env`. Source: EnvVar,
        # https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar
        yield FindingSubject.MODEL_DIR.fault(
            f"The request's args have {REFERENCE}, which reaches the program as it is written",
            SourceLocation(path=request.path),
            cost="The program saves to a directory of that name on its own machine, which is lost with it.",
            repair=f'Read it in the program: os.environ["{VARIABLE}"], for example as the default of the flag.',
        )
        return
    seen, place = "", source.mention(VARIABLE)
    if place is not None:
        seen = "it is read here"
    elif any(VARIABLE in text for text in (*given, examined.surroundings.dockerfile)):
        seen = "the program is given it"
    elif request is not None and request.spec.model_uri is not None:
        seen = "the request's model_uri says where the model is"
    elif any(source.mention(text) for text in OTHER_WAYS) or any(
        name.startswith(OTHER_READERS) for name in source.imported_names
    ):
        seen = "the source does not read it, but may get it in another way"
    seen = seen or source.gap
    if seen:
        yield FindingSubject.MODEL_DIR.not_followed(
            f"whether a model is in {VARIABLE} at the end: {seen}", place
        )
        return
    yield FindingSubject.MODEL_DIR.fault(
        f"The program never reads {VARIABLE}",
        SourceLocation(path=source.entries[0].shown_path) if source.entries else None,
        repair=f'Save to os.environ["{VARIABLE}"], or, with functions for plain files, below '
        f'os.environ["{VARIABLE}"].replace("gs://", "/gcs/", 1).',
    )
