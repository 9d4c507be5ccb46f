"""The code has nothing that works on one system only: its encoding and line ends, modules of Unix, file names."""

import ast
import re
import subprocess
from collections.abc import Iterator

import pytest

from _paths import ROOT

PACKAGES = ("meanfield", "policy_extraction", "theory", "validation", "paper_figs")
UNIX = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NEEDED = {  # by method: otherwise the same call gives other bytes on another system
    "read_text": {"encoding"},
    "write_text": {"encoding", "newline"},
    "to_csv": {"lineterminator"},
    "open": {"encoding"},
}
NOT_ON_WINDOWS = re.compile(
    r'[<>:"\\|?*\x00-\x1f]|[. ](/|$)|(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.[^/]*)?(/|$)', re.IGNORECASE
)


def of_one_system(source: str) -> Iterator[str]:
    """The calls and imports in a source that mean something else, or nothing, on another system."""
    tree = ast.parse(source)
    for node in tree.body:
        modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (f"import {module}" for module in modules if module.partition(".")[0] in UNIX)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "open" and not _of_text(node):
                continue
            if missing := NEEDED.get(name, set()) - {word.arg for word in node.keywords}:
                yield f"{name} without {', '.join(sorted(missing))}"


def _of_text(node: ast.Call) -> bool:
    """Whether a call of `open` gives no mode or that of a text; members of archives are opened by their names."""
    places = node.args[1:] if isinstance(node.func, ast.Name) else node.args
    modes = [*places[:1], *(word.value for word in node.keywords if word.arg == "mode")]
    return all(isinstance(mode, ast.Constant) and "b" not in str(mode.value) for mode in modes)


@pytest.mark.parametrize("package", PACKAGES)
def test_sources_work_on_every_system(package):
    found = {path: list(of_one_system(path.read_text(encoding="utf-8"))) for path in (ROOT / package).rglob("*.py")}
    assert found
    assert {str(path.relative_to(ROOT)): calls for path, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    ("source", "number"),
    [
        *(("import fcntl", 1), ("from resource import getrlimit", 1), ("path.open()", 1), ("open(path, 'w')", 1)),
        *(("path.read_text()", 1), ("path.write_text(text, encoding='utf-8')", 1), ("table.to_csv(path)", 1)),
        *(("path.open('rb')", 0), ("open(path, 'wb')", 0), ("archive.open(name)", 0)),
    ],
)
def test_calls_of_one_system_are_found(source, number):
    """Files of bytes are the same everywhere."""
    assert len(list(of_one_system(source))) == number


def test_every_system_can_hold_the_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    names = [name for name in listed.stdout.split("\0") if name]
    if not names:
        pytest.skip("this is no clone of the repository")
    assert [name for name in names if NOT_ON_WINDOWS.search(name)] == []
    assert len({name.lower() for name in names}) == len(names), "two names differ in their case only"
    assert max(map(len, names)) < 120, "Windows takes 260 characters with the folders above"


def test_names_that_windows_refuses_are_found():
    names = ["a:b.png", "docs/Aux.md", "con", "a./b", "what?", "docs/auxiliary.md"]
    assert [name for name in names if NOT_ON_WINDOWS.search(name)] == names[:-1]
