"""The smallest change of a policy that gives a number another value: q' ∝ q exp(μ g/m), with g and m those of q'.

The weights m come from q': weights of q would leave memories free that hardly occur before the change and often after.
An iteration takes g, m and the number at the present q', and the one μ with which the number, linearised there, is as
wanted. Anderson's mixing finds the solution; where it does not, the wanted value is approached in steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import root_scalar
from scipy.special import softmax
from tqdm import tqdm

from meanfield._numerics.anderson import anderson
from meanfield._numerics.trajectory import Vector
from meanfield.toolbox._errors import MeanfieldError

RAREST = 1e-9  # weight of a memory, at least
SCALES = 1e-2  # of weights in the mixing, against equal weights: what hardly occurs before may occur after
STATIONARY = 5e-5  # residual, relative: κ, for one, is known to 2e-5 of its way
ROUGH = 1e-2  # of steps on the way
VALUE_ERROR = 3e-5  # against the way that the value goes
MAX_ITERATIONS = 20
SMALLEST_STEP = 1 / 32  # of that way
DOUBLINGS = 100  # of μ

Policy = Float[np.ndarray, "states words"]
Unknowns = Float[np.ndarray, " unknowns"]


class Slope(NamedTuple):
    """The value of a policy, and what an iteration needs of it."""

    value: float
    gradient: Policy  # ∂v/∂q(w | i), up to a number for each memory
    weight: Vector  # m

    @classmethod
    def of(cls, value: float, derivative: np.ndarray, passed: Vector) -> Slope:
        """The slope from a derivative as in `sensitivity`, and how often agents have each memory."""
        n_words = derivative.shape[1] if derivative.ndim == 2 else 2
        by_word = derivative if derivative.ndim == 2 else np.stack([derivative, -derivative], axis=1)
        return cls(float(value), by_word * (n_words - 1) / n_words, np.maximum(passed / passed.sum(), RAREST))

    @property
    def derivative(self) -> np.ndarray:
        """The derivative in what a word gains while all others lose equal parts; for two words, in the first's."""
        n_words = self.gradient.shape[1]
        gained = (self.gradient - self.gradient.mean(1, keepdims=True)) * n_words / (n_words - 1)
        return gained[:, 0] if n_words == 2 else gained


SlopeOf = Callable[[xr.Dataset], Slope]  # of a policy; MeanfieldError where there is none


class Changed(NamedTuple):
    """A changed policy, and how far it is from stationary."""

    q: Policy
    slope: Slope
    residual: float  # what an iteration changes, against the whole change; in logits, weighted as in KL


class LeastChange:
    """The search from one policy. Words that are never said in a memory are not said there afterwards.

    Its unknowns are the changes of logits, in units in which the cost is about half their square.
    """

    def __init__(self, policy: xr.Dataset, slope_of: SlopeOf, before: Slope, value: float, bar: tqdm) -> None:
        """A search for a `value`, from that `before`."""
        self._policy, self._slope_of, self._bar = policy, slope_of, bar
        self._start, self._end = before.value, value
        self.before = before
        self._original = policy["q"].values
        self._free = (self._original > 0).sum(1) > 1
        self._q = self._original[self._free]
        with np.errstate(divide="ignore"):
            self._logits = np.log(self._q)
        scale = np.maximum(before.weight[self._free], SCALES / len(self._free))[:, None]
        self._metric = np.where(self._q > 0, np.sqrt(scale * self._q), 1.0)
        self.reason = ""

    def found(self) -> Changed | None:
        """The change, or None, with the last `reason` why the value is not reached."""
        part, step, state = 0.0, 1.0, np.zeros(self._q.size)
        while part < 1:
            upto = min(1.0, part + step)
            further = self._solved(state, self._start + upto * (self._end - self._start), upto == 1)
            if further is not None:
                part, state = upto, further
            elif (step := step / 2) < SMALLEST_STEP:
                return None
        stepped = self._next(state, self._end)
        if stepped is None:
            return None
        q, slope, turned = stepped

        def size(state: Unknowns) -> float:
            moved, weight = _centred(self._moved(state), q[self._free]), slope.weight[self._free, None]
            return float(np.sqrt((weight * q[self._free] * moved**2).sum()))

        return Changed(q, slope, size(turned - state) / size(state))

    def _solved(self, state: Unknowns, value: float, last: bool) -> Unknowns | None:
        """The stationary change to a value, from the one to another value."""
        off, size = [np.inf], [0.0]

        def iterate(state: Unknowns) -> Unknowns:
            stepped = self._next(state, value)
            if stepped is None:
                return np.full(len(state), np.nan)
            _, slope, turned = stepped
            off[0], size[0] = abs(slope.value - value), float(np.linalg.norm(turned))
            return turned

        def done(residual: Unknowns) -> bool:
            tolerance, error = (STATIONARY, VALUE_ERROR) if last else (ROUGH, ROUGH)
            settled = np.linalg.norm(residual) <= tolerance * size[0]
            return bool(settled and off[0] <= error * abs(self._end - self._start))

        found = anderson(iterate, state, done, MAX_ITERATIONS)
        if found is None and not self.reason:
            self.reason = f"{MAX_ITERATIONS} iterations did not suffice"
        return found

    def _moved(self, state: Unknowns) -> Float[np.ndarray, "free words"]:
        """The change of the logits."""
        return state.reshape(self._metric.shape) / self._metric

    def _next(self, state: Unknowns, value: float) -> tuple[Policy, Slope, Unknowns] | None:
        """The policy of a state, its slope, and the state with μ g/m at which the linearised value is as wanted.

        None where there is none; `reason` then says why.
        """
        self.reason, q, slope = "", self._original, self.before
        if state.any():
            q = self._original.copy()
            q[self._free] = softmax(self._logits + self._moved(state), axis=1)
            self._bar.update()
            try:
                slope = self._slope_of(self._policy.assign(q=self._policy["q"].copy(data=q)))
            except MeanfieldError as error:
                self.reason = str(error)
                return None
            self._bar.set_postfix_str(f"{slope.value:.4g} → {self._end:.4g}")
        g, said = slope.gradient[self._free], q[self._free]
        tilt = _centred(g / slope.weight[self._free, None], self._q)

        def excess(mu: float) -> float:
            return float(slope.value - value + (g * (softmax(self._logits + mu * tilt, axis=1) - said)).sum())

        gain = float((g * tilt * self._q).sum())
        mu = -excess(0.0) / gain if gain > 0 else 0.0
        for _ in range(DOUBLINGS if gain > 0 else 0):
            if excess(mu) * mu >= 0:
                mu = root_scalar(excess, bracket=(0.0, mu), xtol=max(1e-14 * abs(mu), 1e-300)).root
                return q, slope, (mu * tilt * self._metric * (self._q > 0)).ravel()
            mu *= 2
        self.reason = "to first order no change of the answers that have a probability above 0 suffices"
        return None


def _centred(logits: Policy, q: Policy) -> Policy:
    """The values minus their mean over the words of each memory."""
    return logits - (q * logits).sum(1, keepdims=True)
