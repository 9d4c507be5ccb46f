"""Programs on disk: new processes load them, damaged ones are made anew, and the user's JAX is left alone."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from meanfield._numerics.compiled import compiled
from meanfield.core import _export
from meanfield.core._export import exported

ANEW = """
import jax
import numpy as np
from meanfield.core import _export
q = np.full((1, 5, 2), 0.5)
x = np.array([[0, 0.25, 0.25, 0.25, 0.25]])
slope = _export.exported("meanfield.core._sensitivity", "word_share_gradient")
drifts = _export.exported("meanfield.core._trajectory", "word_drifts")((q, np.ones(1), np.zeros(2)), x[:, None])
assert drifts.dtype == np.float64
_export._compile = None
found = slope(q, np.ones(1), np.zeros(2), x)
print(found.sum().round(6))
assert found.dtype == np.float64
assert not jax.config.jax_enable_x64 and jax.config.jax_compilation_cache_dir is None
assert jax.numpy.ones(1).dtype == np.float32
"""


@pytest.fixture
def programs(monkeypatch, tmp_path):
    monkeypatch.setattr(_export, "_folder", lambda: tmp_path)
    return tmp_path


def fresh():
    _export._program.cache_clear()
    return exported("meanfield.core._trajectory", "word_drifts")


ARGUMENTS = (np.full((1, 5, 2), 0.5), np.ones(1), np.zeros(2)), np.full((1, 1, 5), 0.2)


def test_programs_are_kept_and_damaged_ones_made_anew(programs, monkeypatch):
    first = fresh()(*ARGUMENTS)
    (file,) = programs.iterdir()
    content = file.read_bytes()

    def refused(*_):
        raise AssertionError("compiled again")

    with monkeypatch.context() as context:
        context.setattr(_export, "_compile", refused)
        np.testing.assert_array_equal(fresh()(*ARGUMENTS), first)
        for damaged in (content[:-1], content[:100] + b"?" + content[101:], b""):
            file.write_bytes(damaged)
            with pytest.raises(AssertionError, match="compiled again"):
                fresh()(*ARGUMENTS)
    np.testing.assert_array_equal(fresh()(*ARGUMENTS), first)
    assert len(list(programs.iterdir())) == 1
    with monkeypatch.context() as context:
        context.setattr(_export, "_compile", refused)
        fresh()(*ARGUMENTS)


def test_programs_run_where_no_folder_can_be_written(programs, monkeypatch):
    file = programs / "file"
    file.write_text("")
    monkeypatch.setattr(_export, "_folder", lambda: file)
    assert np.abs(fresh()(*ARGUMENTS)).max() > 0


def test_a_new_process_loads_what_needs_lapack_and_leaves_the_configuration_of_jax_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path))
    monkeypatch.setattr(_export, "_folder", _export._folder.__wrapped__)
    _export._program.cache_clear()
    slope = exported("meanfield.core._sensitivity", "word_share_gradient")
    here = slope(np.full((1, 5, 2), 0.5), np.ones(1), np.zeros(2), np.array([[0, 0.25, 0.25, 0.25, 0.25]]))
    done = subprocess.run([sys.executable, "-c", ANEW], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == here.sum().round(6)
    assert "cpu_aot_loader" not in done.stderr


def test_loops_compile_where_no_folder_can_be_written(monkeypatch):
    def without_folder(cache=False, **options):
        def refuse(function):
            raise RuntimeError("cannot cache function: no locator available for file")

        return refuse if cache else numba.njit(**options)

    monkeypatch.setattr("meanfield._numerics.compiled.njit", without_folder)
    assert compiled(lambda x: x + 1)(1) == 2
