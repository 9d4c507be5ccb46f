"""Bifurcation diagrams of reaction models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield._numerics.stability import MARGINAL, stability_columns
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import MAX_TENSOR_STATES, ReactionModel
from meanfield._reactions.continuation import FOLD, HOPF, Branches, Family, branches_of
from meanfield._reactions.fixed_points import validated_masses
from meanfield._reactions.modes import modes_at, reduced_jacobian
from meanfield._reactions.solve import state_coords
from meanfield.core._export import exported
from meanfield.toolbox._arguments import real_number, shown, whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError

higher_derivatives = exported("meanfield.core._rates", "higher_derivatives")

ModelAt = ReactionModel | Callable[..., Any]
MassesAt = Sequence[float | int] | np.ndarray | Callable[..., Any] | None


def reaction_bifurcation(
    model: ModelAt,
    interval: Sequence[float | int] | np.ndarray | None,
    masses: MassesAt = None,
    parameter: str | None = None,
    spacing: float | int = 0.02,
    starts: int = 16,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """The result of `bifurcation` for reaction models along a parameter."""
    low, high = _validated_interval(interval)
    starts, seed = whole_number("starts", starts, 1), whole_number("seed", seed)
    family = _family(model, masses, low, high)
    found = branches_of(family, spacing, starts, seed, progress)
    label = parameter if parameter is not None else _first_name(masses if isinstance(model, ReactionModel) else model)
    result = _label(family, found, low, high).assign_attrs(parameter=label, completeness=_completeness(found))
    return stamp(result, "reaction_bifurcation", spacing=spacing, starts=starts, seed=seed)


def _validated_interval(interval: Sequence[float | int] | np.ndarray | None) -> tuple[float, float]:
    try:
        low, high = interval  # type: ignore[misc]
    except (TypeError, ValueError):
        raise InputError(f"interval = {shown(interval)}: expected the smallest and largest parameter") from None
    low = real_number("interval[0]", low)
    return low, real_number("interval[1]", high, above=low)


def _family(model: ModelAt, masses: MassesAt, low: float, high: float) -> Family:
    if isinstance(model, ReactionModel) and not callable(masses):
        raise InputError("nothing depends on a parameter: expected a function for population, for masses, or for both")

    def value(s: float) -> float:
        return low * (1 - s) + high * s

    def model_at(s: float) -> ReactionModel:
        found = model if isinstance(model, ReactionModel) else model(value(s))
        if not isinstance(found, ReactionModel):
            raise InputError(
                f"population({value(s):g}) is of type {type(found).__name__}: expected a ReactionModel; reaction_model "
                "makes one of a policy or a Population"
            )
        if s != 0.5:
            _check_alike(f"population({value(s):g})", found, typical, 0 < s < 1)
        return found

    def masses_at(s: float) -> np.ndarray:
        found = validated_masses(typical, masses(value(s)) if callable(masses) else masses)
        if 0 < s < 1 and ((found > 0) != present).any():
            raise InputError(f"masses({value(s):g}) = {found}: expected the same classes to be empty as in the middle")
        return found

    typical = model_at(0.5)
    present = validated_masses(typical, masses(value(0.5)) if callable(masses) else masses) > 0
    for s in (0.0, 1.0):
        model_at(s)
        masses_at(s)
    return Family(model_at, masses_at)


def _check_alike(name: str, model: ReactionModel, typical: ReactionModel, inside: bool) -> None:
    """InputError unless both have the same states and conserved classes, which rates of 0 may split at an end."""
    if model.states != typical.states:
        raise InputError(f"{name} has the states {model.names}: expected {typical.names}")
    together = [np.unique(typical.classes[model.classes == c]).size for c in range(model.n_classes)]
    if max(together) > 1 or (inside and model.n_classes != typical.n_classes):
        raise InputError(
            f"{name} has {model.n_classes} conserved classes, the model in the middle of the interval "
            f"{typical.n_classes}: expected the same within the interval"
        )


def _first_name(function: object) -> str:
    """The name of the first argument of a function."""
    try:
        return next(iter(inspect.signature(function).parameters))  # type: ignore[arg-type]
    except (TypeError, ValueError, StopIteration):
        return "parameter"


def _label(family: Family, found: Branches, low: float, high: float) -> xr.Dataset:
    over = ("point",)
    points = [(arc, point) for arc, branch in enumerate(found.points) for point in branch]
    x = np.array([point.x for _, point in points]).reshape(-1, family.typical.n_states)
    kinds = np.array([point.kind for _, point in points], dtype=str)
    scale = family.typical.fastest
    modes = [modes_at(family.at(point.s), point.x, family.face) for _, point in points]
    factor = np.array([family.at(point.s).fastest / scale for _, point in points])
    leading = np.array([one.values[0] if one.values.size else -np.inf for one in modes], dtype=complex)
    leading.real, leading.imag = leading.real * factor, leading.imag * factor
    error = np.array([one.errors[0] if one.values.size else 0.0 for one in modes]) * factor
    lyapunov = [lyapunov_coefficient(family.at(p.s), p.x) if p.kind == HOPF else np.nan for _, p in points]
    columns = {
        "parameter": (over, np.array([low + point.s * (high - low) for _, point in points]), "parameter", "1"),
        "composition": ((*over, "state"), x, "fraction of agents", "1"),
        **stability_columns(over, leading, error, f"1/{family.typical.time_unit}", scale=scale),
        "bifurcation": (over, kinds, "what happens here", "1"),
        "fold": (over, kinds == FOLD, "the parameter turns here", "1"),
        "lyapunov": (over, np.array(lyapunov, dtype=float), "first Lyapunov coefficient", "1"),
        "arc": (over, np.array([arc for arc, _ in points], dtype=int), "connected piece", "1"),
    }
    return labelled(columns, coords=state_coords(family.typical))


def lyapunov_coefficient(model: ReactionModel, x: np.ndarray) -> float:
    """The first Lyapunov coefficient at a Hopf bifurcation; negative where a stable cycle grows out of it.

    With A the Jacobian, A r = iω r, l·A = iω l, l·r = |r| = 1, B(u, v) the second derivative of the drift and the third
    C(u, v, w), which only rates that are functions have,

        l_1 = Re[l·(C(r, r, r̄) + B(r̄, (2iω - A)⁻¹ B(r, r)) - 2 B(r, A⁻¹ B(r, r̄)))] / 2ω.

    NaN for such rates in more than 64 states, whose derivatives have too many numbers.
    """
    face = model.class_masses(x)[model.classes] > 0
    modes = modes_at(model, x, face)
    oscillating = np.flatnonzero(modes.values.imag > 0)
    if not oscillating.size:
        return np.nan
    first = oscillating[np.argmin(np.abs(modes.values.real[oscillating]))]
    tangent, A = modes.tangent, reduced_jacobian(model, x, modes.tangent)
    r = tangent.T @ modes.vectors[:, first]
    r /= np.linalg.norm(r)
    values, left = np.linalg.eig(A.T)
    left = left[:, np.argmin(np.abs(values - modes.values[first]))]
    left /= left @ r
    omega = float(modes.values[first].imag)

    if np.linalg.cond(A) > 1 / MARGINAL or (len(model.changes) and model.n_states > MAX_TENSOR_STATES):
        return np.nan  # the first is a zero eigenvalue beside the pair
    curved = third = None
    if len(model.changes):
        curved, third = (found / model.fastest for found in higher_derivatives(model.game, x, tangent))

    def second(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        if curved is not None:
            return curved @ v @ u
        parts = [reduced_jacobian(model, x + tangent @ part, tangent) - A for part in (u.real, u.imag)]
        return (parts[0] + 1j * parts[1]) @ v

    doubled = np.linalg.solve(2j * omega * np.eye(len(A)) - A, second(r, r))
    steady = np.linalg.solve(A, second(r, r.conj()))
    curve = second(r.conj(), doubled) - 2 * second(r, steady)
    if third is not None:
        curve = curve + third @ r.conj() @ r @ r
    return float((left @ curve).real / (2 * omega))


def _completeness(found: Branches) -> str:
    parts = [
        "Not guaranteed: a branch is missing if it meets no other one and none of the parameters at which fixed points "
        "were searched for, and bifurcations at almost one place count as one."
    ]
    if found.cut:
        parts.append(f"Followed only in part, or not at all: {found.cut}.")
    if found.continua:
        parts.append(f"Fixed points that adjoin others at the same parameter, and were not followed: {found.continua}.")
    return " ".join(parts)
