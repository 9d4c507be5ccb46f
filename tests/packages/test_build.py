"""Contents and metadata of the wheel and the source distribution."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from _paths import ROOT

pytestmark = pytest.mark.slow

PACKAGES = ("meanfield", "policy_extraction", "theory", "validation", "paper_figs")
KINDS = {".py", ".typed", ".toml", ".csv", ".html", ".js", ".css", ".nc"}
LIBRARY = "meanfield/_explore/page/uplot"
LARGEST = 3_000_000  # bytes: only small policies are bundled


@pytest.fixture(scope="module")
def in_wheel(built: tuple[Path, Path]) -> set[str]:
    with ZipFile(built[0]) as wheel:
        return set(wheel.namelist())


@pytest.fixture(scope="module")
def in_source(built: tuple[Path, Path]) -> set[str]:
    with tarfile.open(built[1]) as source:
        return {name.partition("/")[2] for name in source.getnames()}


@pytest.fixture(scope="module")
def metadata(built: tuple[Path, Path]) -> Message:
    with ZipFile(built[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(wheel.read(name).decode("utf-8"))


def kept_by_git() -> set[str]:
    """Files of the packages that git keeps."""
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, capture_output=True, check=True)
    return set(listed.stdout.decode("utf-8").strip("\0").split("\0"))


def test_the_wheel_holds_the_packages_and_nothing_else(in_wheel: set[str]) -> None:
    about = {name for name in in_wheel if ".dist-info/" in name}
    assert in_wheel - about == kept_by_git()
    others = {name for name in in_wheel - about if PurePosixPath(name).suffix not in KINDS}
    assert {str(PurePosixPath(name).parent) for name in others} == {LIBRARY}, "what comes with another's licence"
    names = {PurePosixPath(name).name for name in about}
    assert names == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}


@pytest.mark.parametrize(
    "needed",
    [
        *("meanfield/datasets/smollm2.nc", "policy_extraction/prompts/templates", "theory/norms/society.toml"),
        "paper_figs/published/table_s1.csv",
        *("meanfield/_explore/page/page.html", "meanfield/_explore/page/engine/flows.js", f"{LIBRARY}/uPlot.min.css"),
    ],
)
def test_what_is_read_at_run_time_is_in_it(in_wheel: set[str], needed: str) -> None:
    assert any(name.startswith(needed) for name in in_wheel)


def test_the_source_distribution_holds_what_makes_the_wheel(in_source: set[str]) -> None:
    beside = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "PKG-INFO", ".gitignore"}
    assert in_source == kept_by_git() | beside


def test_both_are_small(built: tuple[Path, Path]) -> None:
    assert [path.name for path in built if path.stat().st_size > LARGEST] == []


def test_an_index_takes_them(built: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout


def test_the_page_on_an_index_has_no_dead_links(metadata: Message) -> None:
    page = str(metadata.get_payload())
    assert "# meanfield" in page and "```python" in page
    assert re.findall(r"\]\((?!https?:)[^)]*\)", page) == []
    assert "κ√N" not in page.partition("## Install")[0], "the caption goes with its picture"


def test_the_metadata_is_that_of_the_project(metadata: Message) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (metadata["Name"], metadata["Version"]) == ("meanfield-llm", project["version"])
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("License-File") == ["LICENSE", f"{LIBRARY}/LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Provides-Extra") == sorted(project["optional-dependencies"])
