"""Files that are replaced whole or not at all."""

from pathlib import Path

import pytest

from meanfield.toolbox import _files, whole_file


@pytest.fixture
def held(tmp_path, monkeypatch):
    """A file that can be replaced at the third try only, as on Windows while a virus scanner reads it."""
    path, replace, tries = tmp_path / "table.csv", Path.replace, []
    path.write_bytes(b"old")

    def late(self, target):
        tries.append(target)
        if len(tries) < 3:
            raise PermissionError(13, "it is open in another process")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", late)
    return path


def write(path: Path) -> None:
    with whole_file(path) as temporary:
        temporary.write_bytes(b"new")


def test_a_file_that_is_open_elsewhere_for_a_moment_is_replaced(held, monkeypatch):
    monkeypatch.setattr(_files, "HELD", 60.0)
    write(held)
    assert held.read_bytes() == b"new" and list(held.parent.iterdir()) == [held]


def test_a_file_that_can_not_be_replaced_stays_whole(held, monkeypatch):
    monkeypatch.setattr(_files, "HELD", 0.0)
    with pytest.raises(PermissionError):
        write(held)
    assert held.read_bytes() == b"old" and list(held.parent.iterdir()) == [held]
