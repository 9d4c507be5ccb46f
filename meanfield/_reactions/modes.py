"""Eigenvalues of the linearised drift of a reaction model, among perturbations that keep the mass of each class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Complex, Float
from scipy.linalg import null_space

from meanfield._population.reaction_model import ReactionModel

MARGIN = 10.0  # between an error to first order and the one reported
ENOUGH = 1e-9  # a larger error to first order is put to trial
TRIALS = 2  # random changes of the matrix within rounding


class Modes(NamedTuple):
    """Eigenvalues by decreasing real part, in units of the fastest rate, with bounds of their errors, and eigenvectors.

    `reduced` is the matrix, in the orthonormal basis `tangent`.
    """

    values: Complex[np.ndarray, " modes"]
    errors: Float[np.ndarray, " modes"]
    vectors: Complex[np.ndarray, "states modes"]
    reduced: Float[np.ndarray, "modes modes"]
    tangent: Float[np.ndarray, "states modes"]


def modes_at(model: ReactionModel, x: Float[np.ndarray, " states"], face: Bool[np.ndarray, " states"]) -> Modes:
    """The modes at x of perturbations on a face."""
    tangent = tangent_space(model, face)
    reduced = reduced_jacobian(model, x, tangent)
    values, vectors = np.linalg.eig(reduced)
    order = np.lexsort((-values.imag, -values.real))
    values, vectors = values[order].astype(complex), vectors[:, order]
    return Modes(values, _errors(reduced, values, vectors), (tangent @ vectors).astype(complex), reduced, tangent)


def reduced_jacobian(
    model: ReactionModel, x: Float[np.ndarray, " states"], tangent: Float[np.ndarray, "states modes"]
) -> Float[np.ndarray, "modes modes"]:
    """The Jacobian at x in this basis, in units of the fastest rate."""
    return tangent.T @ model.jacobian(x) @ tangent / model.fastest


def _errors(reduced: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> Float[np.ndarray, " modes"]:
    """The errors of the eigenvalues from rounding of the matrix: to first order, or by trial where that is too large.

    Eigenvalues of a defective matrix have infinite derivatives, though none may move.
    """
    if not values.size:
        return np.empty(0)
    rounding = np.finfo(float).eps * max(float(np.linalg.norm(reduced)), 1.0)  # its entries are differences of rates
    try:
        errors = MARGIN * rounding * np.linalg.norm(np.linalg.inv(vectors), axis=1)  # rows are the left eigenvectors
    except np.linalg.LinAlgError:
        errors = np.full(len(values), np.inf)
    if (errors <= ENOUGH).all():
        return errors
    random = np.random.default_rng(0)
    moved = [np.linalg.eigvals(reduced + rounding * random.choice([-1, 1], reduced.shape)) for _ in range(TRIALS)]
    trials = [np.abs(values[:, None] - found).min(1) for found in moved]
    return np.minimum(errors, MARGIN * np.max(trials, axis=0))


def tangent_space(model: ReactionModel, face: Bool[np.ndarray, " states"]) -> Float[np.ndarray, "states directions"]:
    """An orthonormal basis of the perturbations on a face that keep the mass of each class."""
    blocks = [np.empty((model.n_states, 0))]
    for c in np.unique(model.classes[face]):
        members = np.flatnonzero(face & (model.classes == c))
        block = np.zeros((model.n_states, len(members) - 1))
        block[members] = null_space(np.ones((1, len(members))))
        blocks.append(block)
    return np.hstack(blocks)
