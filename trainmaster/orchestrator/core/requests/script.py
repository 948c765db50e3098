"""The command with which a replica unpacks a script's archive, installs its requirements and becomes it.

The unpacked folder is on the import path, and so is its `src`, unless that is a package. What `trainmaster submit` adds
to the archive is below OWN: the requirements that are not in the requirements.txt at its top, and, for a launcher, the
files of `trainer.launch`, which knows the other replicas.

The command needs Python 3.9 or newer in the image and the bucket under /gcs, and nothing else: the image need not be
made for scripts. Each replica unpacks a copy. The archive is named after its SHA-256, so what runs is what was checked:
an object that was replaced since is refused.
"""

VARIABLE = "TRAINMASTER_SCRIPT"
"""Names the archive in the environment of a replica that runs a script."""

OWN = ".trainmaster"
"""No file of a user is packed under such a name."""
REQUIREMENTS = f"{OWN}/requirements.txt"
LAUNCHERS = ("torchrun", "accelerate", "none")

CONTINUE_VARIABLE = "TRAINMASTER_CONTINUE_FROM"
"""Names the checkpoints of an earlier run, with which this run's begin: docs/how-to/continue-a-run.md."""

INSTALLED = "installed.txt"
"""Names the versions of all packages that the chief's Python sees, beside its checkpoints, as `pip freeze` does."""

CONTINUER = """\
import json, os, shutil, time

here = os.environ.get("AIP_CHECKPOINT_DIR", "").rstrip("/")
target = os.path.join(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), here[len("gs://"):])
task = json.loads(os.environ.get("CLUSTER_SPEC") or "{}").get("task", {})
# AI Platform Training called it master.
is_chief = task.get("type", "chief") in ("workerpool0", "master", "chief") and str(task.get("index", 0)) == "0"

def continue_from(source):
    # The chief copies once, also if it is started again; the earlier run's directory is only read.
    source = os.path.join(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), source[len("gs://"):])
    done = os.path.join(os.path.dirname(target), ".continued")
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

def environment(requirements):
    # pip comes from the image's environment, or from the Python that it was made of.
    pythons = [sys.executable, getattr(sys, "_base_executable", sys.executable)]
    asked = [[python, "-m", "pip"] for python in pythons]
    pip = next((words for words in asked if not subprocess.run([*words, "--version"], capture_output=True).returncode), None)
    if pip is None:
        sys.exit("The script's packages cannot be installed: the image has no pip. Use an image that has it, or the packages.")
    target = tempfile.mkdtemp(prefix="environment-")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", target], check=True)
    python = os.path.join(target, "bin", "python")
    own = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True).stdout.strip()
    # If the image's Python is itself a virtual environment, its packages are not the system's.
    with open(os.path.join(own, "image.pth"), "w") as file:
        file.write("\\n".join(site.getsitepackages()))
    install = ["--python", python, "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    status = subprocess.run([*pip, *install, "--requirement", requirements]).returncode
    if status:
        sys.exit("%s cannot be installed: pip ended with status %d, see its output above." % (requirements, status))
    return python

def keep_own(beside):
    # Python prefers a package on PYTHONPATH to a folder without __init__.py, even one that lies beside the script.
    for name in os.listdir(beside):
        own = os.path.join(beside, name)
        hiding = [os.path.join(path, name, "__init__.py") for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        holds_python = any(file.endswith(".py") for _, _, files in os.walk(own) for file in files)
        if holds_python and any(map(os.path.isfile, hiding)):
            open(os.path.join(own, "__init__.py"), "a").close()

def list_installed(python):
    # The run does not fail for want of this list.
    lister = (
        "import importlib.metadata as m; found = [(d.metadata['Name'] or '', d.version) for d in m.distributions()];"
        " print(*sorted('%s==%s' % each for each in {name.lower(): (name, v) for name, v in reversed(found)}.values()), sep=chr(10))"
    )
    try:
        listed = subprocess.run([python, "-c", lister], capture_output=True, text=True, check=True, timeout=60).stdout
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(os.path.join(os.path.dirname(target), "installed.txt"), "w") as file:
            file.write(listed[:100000])
    except (OSError, subprocess.SubprocessError) as error:
        print("The installed packages are not on record: %s" % error, file=sys.stderr)

def launched(python, launcher, program):
    # trainer.launch sets what torchrun reads, from CLUSTER_SPEC; accelerate reads no variables for it.
    if not os.path.isdir(".trainmaster/trainer"):
        sys.exit("The script's archive has no launcher: submit the script again.")
    launch = "import sys; sys.path.insert(0, '.trainmaster'); from trainer.launch.__main__ import run; run()"
    words = [python, "-u", "-m", "torch.distributed.run"]
    if launcher == "accelerate":
        accelerate = (
            "import os, sys, torch; machines, each, rank, host, port = (os.environ['PET_' + name] for name in"
            " ('NNODES', 'NPROC_PER_NODE', 'NODE_RANK', 'MASTER_ADDR', 'MASTER_PORT'));"
            " os.execv(sys.executable, [sys.executable, '-u', '-m', 'accelerate.commands.launch',"
            " '--num_machines', machines, '--num_processes', str(int(machines) * int(each)), '--machine_rank', rank,"
            " '--main_process_ip', host, '--main_process_port', port,"
            " *['--cpu'] * (machines != '1' and not torch.cuda.is_available()), *sys.argv[1:]])"
        )
        words = [python, "-c", accelerate]
    return ["-c", launch, "--framework", "torch", "--", *words, *program]

archive, launcher, *program = sys.argv[1:]
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
roots = [folder]
if os.path.isdir("src") and not os.path.isfile("src/__init__.py"):
    roots.append(os.path.join(folder, "src"))
beside = "." if program[0] == "-m" else os.path.dirname(program[0]) or "."
for own in {os.path.realpath(path) for path in [beside, *roots]}:
    keep_own(own)
python = sys.executable
named = [path for path in (".trainmaster/requirements.txt", "requirements.txt") if os.path.isfile(path)]
if named and os.environ.get("TRAINMASTER_REQUIREMENTS") != "installed":
    python = environment(named[0])
if here and is_chief:
    list_installed(python)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*roots, os.environ.get("PYTHONPATH")]))
words = ["-u", *program] if launcher == "none" else launched(python, launcher, program)
os.execv(python, [python, *words])
"""
)
"""A Python program. It gets the archive's URI, the launcher, and the script's path in it or `-m` and its module, which its
arguments follow."""


def run_command(archive_uri: str, *program: str, launcher: str = "none") -> tuple[str, ...]:
    """The container's command; the arguments of the program, a file or `-m` and a module, follow it."""
    return ("python3", "-c", RUNNER, archive_uri, launcher, *program)
