"""Eigenvalues in the complex plane."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield import InputError


def spectrum(values, errors):
    values = np.array(values, dtype=complex)
    columns = {
        "eigenvalue": ("mode", values.real, {"units": "1/day"}),
        "eigenvalue_imaginary": ("mode", values.imag),
        "eigenvalue_error": ("mode", np.array(errors, float)),
    }
    return xr.Dataset(columns, attrs={"kind": "spectrum"})


def test_eigenvalues_lie_in_the_complex_plane_with_their_errors():
    values = [0.1 + 0.4j, 0.1 - 0.4j, -1, -1.001, -0.5]
    axes = meanfield.plot(spectrum(values, [0.01, 0.01, 0, 0, np.inf]), color="red")
    (points,) = axes.containers
    np.testing.assert_array_equal(points[0].get_xdata() + 1j * points[0].get_ydata(), values)
    assert points[0].get_color() == "red"
    across, along = (bars.get_segments() for bars in points[2])
    np.testing.assert_allclose([np.ptp(across[0][:, 0]), np.ptp(along[0][:, 1])], 0.02)
    assert [list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "--"] == [[0, 0]]
    assert sorted(note.get_text() for note in axes.texts) == [" (error unknown)", "×2"]
    assert axes.get_xlabel() == "real part (1/day)"
    assert -axes.get_ylim()[0] == axes.get_ylim()[1] > 0.4


def test_a_pair_that_is_cut_in_two_is_told():
    told = "the conjugate of the last eigenvalue, 0.1+0.4j, is left out: k = 2 has both"
    axes = meanfield.plot(spectrum([0.1 + 0.4j], [0]).assign_attrs(completeness=told))
    assert [text.get_text().replace("\n", " ") for text in axes.get_legend().get_texts()] == [told]


def test_real_eigenvalues_are_not_stretched_by_rounding():
    axes = meanfield.plot(spectrum([0.1 + 4e-296j, -1], [0, 0]))
    assert axes.get_ylim() == (-0.1, 0.1)


def test_eigenvalues_without_numbers_are_counted_and_nothing_else_is_refused():
    axes = meanfield.plot(spectrum([0.1, np.nan, -1], [0, 0, 0]))
    assert axes.containers[0][0].get_xdata().tolist() == [0.1, -1]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["without numbers: 1"]
    with pytest.raises(InputError, match="no number in eigenvalue and eigenvalue_imaginary"):
        meanfield.plot(spectrum([np.nan], [0]))
