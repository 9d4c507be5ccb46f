"""The parameters of Mechanism 1, and the paper's fit of them."""

# ruff: noqa: N815 (T and R are subscripts of the paper)

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield import InputError
from meanfield.toolbox import expect, real_number, real_numbers, whole_number
from theory.flag_game.random_field import FieldLaw

POSITIVE = ("exponent_R", "beta")
NOT_NEGATIVE = ("scale_T", "scale_R", "sd_T", "sd_R", "sd_0", "J")


@dataclass(frozen=True)
class Mechanism1:
    """Random fields and social coupling of N agents. Source: [002] Appendix E.

    An agent's field h is drawn from N(mean_c, sd_c²), where the component c is T, R or 0 with the probabilities

        w_T(N) = weight_T (1 - exp(-N/scale_T)),   w_R(N) = weight_R (1 - exp(-(N/scale_R)^exponent_R)),

    and w_0 = 1 - w_T - w_R. The belief ℓ starts at h. In each of `interactions_per_agent`·N interactions a speaker says
    a = +1 (the truth) with probability (1 + tanh(βℓ))/2, else -1 (the rival), and a listener moves to
    (1 - α)ℓ + α(h + J a). At the end agents with ℓ > 0 vote for the truth, the others for the rival.

    Attributes
    ----------
    weight_T, weight_R
        Weights of the components for large N; their sum is at most 1.
    scale_T, scale_R
        Numbers of agents, ≥ 0, at which the weights saturate; 0 for constant weights.
    exponent_R
        > 0.
    mean_T, mean_R, mean_0, sd_T, sd_R, sd_0
        Means and standard deviations of the fields, in nats.
    J
        J_msg ≥ 0, the effect of a message on a field.
    beta
        β > 0, the sharpness with which beliefs decide messages.
    alpha
        α, uptake, above 0 and at most 1.
    interactions_per_agent
        Interactions over N, a whole number.

    Raises
    ------
    InputError
        If a value is out of range.

    Examples
    --------
    The rival's component has little weight in groups of four and most of it in large ones.

    >>> from dataclasses import replace
    >>> from theory.flag_game.mechanism1 import APPENDIX_E
    >>> APPENDIX_E.weights([4, 128]).round(2)
    array([[0.16, 0.02, 0.83],
           [0.33, 0.59, 0.08]])
    >>> replace(APPENDIX_E, scale_R=0.0).weights(4).round(2)
    array([0.16, 0.59, 0.25])
    """

    weight_T: float
    scale_T: float
    weight_R: float
    scale_R: float
    exponent_R: float
    mean_T: float
    sd_T: float
    mean_R: float
    sd_R: float
    mean_0: float
    sd_0: float
    J: float
    beta: float
    alpha: float
    interactions_per_agent: int = 16

    def __post_init__(self) -> None:
        for name in PARAMETERS:
            value = getattr(self, name)
            real_number(name, value, least=0 if name in NOT_NEGATIVE else None, above=0 if name in POSITIVE else None)
        real_number("alpha", self.alpha, above=0, most=1)
        weights = (self.weight_T, self.weight_R)
        if min(weights) < 0 or sum(weights) > 1:
            raise InputError(f"weight_T, weight_R = {weights}: weights above 1 or below 0; they sum to at most 1")
        played = whole_number("interactions_per_agent", self.interactions_per_agent, 0)
        object.__setattr__(self, "interactions_per_agent", played)

    @classmethod
    def of(cls, fit: xr.Dataset) -> Mechanism1:
        """All parameters of a result of `fit_mechanism1`, fitted or held.

        Raises
        ------
        InputError
            If `fit` is something else.
        """
        expect(fit, "mechanism1_fit", "fit")
        values = {name: float(fit["estimate"].sel(parameter=name)) for name in PARAMETERS}
        return cls(**values, interactions_per_agent=int(fit.attrs["option_interactions_per_agent"]))

    @property
    def theta(self) -> np.ndarray:
        """The values of PARAMETERS, shape (14,)."""
        return np.array([getattr(self, name) for name in PARAMETERS], dtype=float)

    def weights(self, n_agents: ArrayLike) -> np.ndarray:
        """(w_T, w_R, w_0) on the last axis for each N ≥ 1 of `n_agents`; N may be infinite."""
        if not (real_numbers(n_agents, "n_agents") >= 1).all():
            raise InputError(f"n_agents = {n_agents}: expected numbers of at least 1")
        # 1 - 0.9 - 0.1 is below 0
        return np.maximum(component_weights(self.theta[:5], n_agents), 0.0)

    def field_law(self, n_agents: float = np.inf) -> FieldLaw:
        """The distribution of an agent's field among N agents, by default infinitely many."""
        return FieldLaw(self.weights(n_agents), self.theta[5:11:2], self.theta[6:11:2])


PARAMETERS = tuple(field.name for field in fields(Mechanism1) if field.name != "interactions_per_agent")


def component_weights(shape: np.ndarray, n_agents: ArrayLike) -> np.ndarray:
    """(w_T, w_R, w_0) on the last axis, from (weight_T, scale_T, weight_R, scale_R, exponent_R), in NumPy or JAX."""
    xp = shape.__array_namespace__()
    weight_T, scale_T, weight_R, scale_R, exponent_R = shape
    n = xp.asarray(n_agents, dtype=float)
    tiny = 1e-6  # a scale of 0 then gives saturated weights with finite derivatives
    w_T = weight_T * -xp.expm1(-n / (scale_T + tiny))
    # exp(50) stands for infinity, and has finite derivatives
    w_R = weight_R * -xp.expm1(-xp.exp(xp.minimum(exponent_R * xp.log(n / (scale_R + tiny)), 50.0)))
    return xp.stack([w_T, w_R, 1 - w_T - w_R], axis=-1)


APPENDIX_E = Mechanism1(
    **{"weight_T": 0.3263, "scale_T": 6.185, "weight_R": 0.5911, "scale_R": 25.66, "exponent_R": 1.900},
    **{"mean_T": 0.537, "sd_T": 0.407, "mean_R": -0.301, "sd_R": 0.974, "mean_0": -0.070, "sd_0": 1.641},
    **{"J": 2.302, "beta": 1.078, "alpha": 0.45},
)
