"""The command with which a replica unpacks a script's archive, installs its requirements and becomes it.

The command needs Python 3.9 or newer in the image and the bucket under /gcs, and nothing else: the image need not be
made for scripts. Each replica unpacks a copy. The archive is named after its SHA-256, so what runs is what was checked:
an object that was replaced since is refused.
"""

VARIABLE = "TRAINMASTER_SCRIPT"
"""Names the archive in the environment of a replica that runs a script."""

CONTINUE_VARIABLE = "TRAINMASTER_CONTINUE_FROM"
"""Names the checkpoints of an earlier run, with which this run's begin: docs/how-to/continue-a-run.md."""

CONTINUER = """\
import json, os, shutil, time

def continue_from(source):
    # The chief copies once, also if it is started again; the earlier run's directory is only read.
    here = os.environ.get("AIP_CHECKPOINT_DIR", "").rstrip("/")
    root = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
    source, target = (os.path.join(root, uri[len("gs://"):]) for uri in (source, here))
    done = os.path.join(os.path.dirname(target), ".continued")
    task = json.loads(os.environ.get("CLUSTER_SPEC") or "{}").get("task", {})
    is_chief = (task.get("type", "workerpool0"), task.get("index", 0)) == ("workerpool0", 0)
    while here and not os.path.exists(done):
        if is_chief:
            shutil.copytree(source, target, dirs_exist_ok=True)
            open(done, "w").close()
        time.sleep(0 if is_chief else 1)

if os.environ.get("TRAINMASTER_CONTINUE_FROM"):
    continue_from(os.environ["TRAINMASTER_CONTINUE_FROM"])
"""
"""The beginning of RUNNER."""

RUNNER = (
    CONTINUER
    + """\
import hashlib, io, os, site, subprocess, sys, tarfile, tempfile

def environment():
    # pip comes from the image's environment, or from the Python that it was made of.
    pythons = [sys.executable, getattr(sys, "_base_executable", sys.executable)]
    asked = [[python, "-m", "pip"] for python in pythons]
    pip = next((words for words in asked if not subprocess.run([*words, "--version"], capture_output=True).returncode), None)
    if pip is None:
        sys.exit("requirements.txt cannot be installed: the image has no pip. Use an image that has it, or the packages.")
    target = tempfile.mkdtemp(prefix="environment-")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", target], check=True)
    python = os.path.join(target, "bin", "python")
    own = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True).stdout.strip()
    # If the image's Python is itself a virtual environment, its packages are not the system's.
    with open(os.path.join(own, "image.pth"), "w") as file:
        file.write("\\n".join(site.getsitepackages()))
    install = ["--python", python, "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    status = subprocess.run([*pip, *install, "--requirement", "requirements.txt"]).returncode
    if status:
        sys.exit("requirements.txt cannot be installed: pip ended with status %d, see its output above." % status)
    return python

def keep_own(beside):
    # Python prefers a package on PYTHONPATH to a folder without __init__.py, even one that lies beside the script.
    for name in os.listdir(beside):
        own = os.path.join(beside, name)
        hiding = [os.path.join(path, name, "__init__.py") for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        holds_python = any(file.endswith(".py") for _, _, files in os.walk(own) for file in files)
        if holds_python and any(map(os.path.isfile, hiding)):
            open(os.path.join(own, "__init__.py"), "a").close()

archive, script, *arguments = sys.argv[1:]
path = os.path.join(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), archive[len("gs://"):])
try:
    with open(path, "rb") as file:
        content = file.read()
except OSError as error:
    sys.exit("The script's archive %s cannot be read: %s" % (archive, error))
if hashlib.sha256(content).hexdigest() + ".tar.gz" != os.path.basename(path):
    sys.exit("%s is not the archive that was submitted: its content has another SHA-256." % archive)
folder = tempfile.mkdtemp(prefix="script-")
with tarfile.open(fileobj=io.BytesIO(content)) as tar:
    tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
os.chdir(folder)
keep_own(os.path.dirname(script) or ".")
python = sys.executable
if os.path.isfile("requirements.txt") and os.environ.get("TRAINMASTER_REQUIREMENTS") != "installed":
    python = environment()
os.execv(python, [python, "-u", script, *arguments])
"""
)
"""A Python program. It gets the archive's URI, the script's path in it, and the script's arguments."""


def run_command(archive_uri: str, file: str) -> tuple[str, ...]:
    """The container's command; the script's arguments follow it."""
    return ("python3", "-c", RUNNER, archive_uri, file)
