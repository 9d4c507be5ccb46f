"""The smallest change of a two-word policy that gives a number another value: κ, or a barrier.

Of all policies q' with a given value v, one with the least Σ_i m_i KL(q'(i) || q(i)) has, with a multiplier μ,

    log q'_0(i)/q'_1(i) = log q_0(i)/q_1(i) + μ g_i/m_i,   g_i = ∂v/∂q_0(i) at q'.

v is a number of a path, and the weights m are those of the path of q' itself. Weights of the path of q would leave
memories free to change that hardly occur before the change and often after it.

A turn takes v, g and m at the present q', and the one μ with which v, linearised there, is as wanted. The
solution is what a turn leaves as it is; Anderson's mixing finds it. Where it does not, the wanted value is approached
in steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import root_scalar
from scipy.special import expit, rel_entr
from tqdm import tqdm

from meanfield._numerics.anderson import anderson
from meanfield._numerics.course import Vector
from meanfield.toolbox._errors import ConvergenceError

RAREST = 1e-9  # weight of a memory, at least
SCALES = 1e-2  # of weights in the mixing, against equal weights: what hardly occurs before may occur after
STATIONARY = 5e-5  # residual, relative: κ, for one, is known to 2e-5 of its way
ROUGH = 1e-2  # of steps on the way
VALUE_ERROR = 3e-5  # against the way that the value goes
MAX_TURNS = 20
SMALLEST_STEP = 1 / 8  # of that way
DOUBLINGS = 100  # of μ

Policy = Float[np.ndarray, "states two"]


class Slope(NamedTuple):
    """The value of a policy, and what a turn needs of it."""

    value: float
    derivative: Vector  # ∂v/∂q_0(i)
    weight: Vector  # m


SlopeOf = Callable[[xr.Dataset], Slope | str]  # of a policy, or the reason why there is none


def weights_of(passed: Vector) -> Vector:
    """m from how often agents have each memory."""
    return np.maximum(passed / passed.sum(), RAREST)


class Changed(NamedTuple):
    """A changed policy, and how far it is from stationary."""

    q: Policy
    slope: Slope
    residual: float  # what a turn changes, against the whole change; in logits, weighted as in KL


def divergence(q: Policy, original: Policy) -> Vector:
    """KL(q(i) || original(i)) for each memory i, in nats."""
    return rel_entr(q, original).sum(1)


class LeastChange:
    """The search from one policy. Memories with an exact 0 are left as they are."""

    def __init__(self, policy: xr.Dataset, slope_of: SlopeOf, before: Slope, value: float, bar: tqdm) -> None:
        """To a `value`, from that `before`."""
        self._policy, self._slope_of, self._bar = policy, slope_of, bar
        self._start, self._end = before.value, value
        self.before = before
        self._original = policy["q"].values
        self._free = self._original.min(1) > 0
        first, second = self._original[self._free].T
        self._log_odds = np.log(first) - np.log(second)
        scale = np.maximum(self.before.weight[self._free], SCALES / len(self._original))
        self._metric = np.sqrt(scale * first * second)
        self.reason = ""

    def found(self) -> Changed | None:
        """The change, or None, with the last `reason` why the value is not reached."""
        part, step, state = 0.0, 1.0, np.zeros(len(self._metric))
        while part < 1:
            upto = min(1.0, part + step)
            further = self._solved(state, self._start + upto * (self._end - self._start), upto == 1)
            if further is not None:
                part, state = upto, further
            elif (step := step / 2) < SMALLEST_STEP:
                return None
        q = self._at(state)
        slope = self._slope(q)
        turned = None if slope is None else self._turned(q, slope, self._end)
        if slope is None or turned is None:
            return None
        spread = np.sqrt(slope.weight[self._free] * q[self._free].prod(1)) / self._metric
        residual = np.linalg.norm(spread * (turned - state)) / np.linalg.norm(spread * state)
        return Changed(q, slope, float(residual))

    def _solved(self, state: Vector, value: float, last: bool) -> Vector | None:
        """The stationary change to a value, from the one to another value."""
        off, size = [np.inf], [0.0]

        def turn(state: Vector) -> Vector:
            q = self._at(state)
            slope = self._slope(q)
            turned = None if slope is None else self._turned(q, slope, value)
            if slope is None or turned is None:
                return np.full(len(state), np.nan)
            off[0], size[0] = abs(slope.value - value), float(np.linalg.norm(turned))
            return turned

        def done(residual: Vector) -> bool:
            tolerance, error = (STATIONARY, VALUE_ERROR) if last else (ROUGH, ROUGH)
            settled = np.linalg.norm(residual) <= tolerance * size[0]
            return bool(settled and off[0] <= error * abs(self._end - self._start))

        found = anderson(turn, state, done, MAX_TURNS)
        if found is None and not self.reason:
            self.reason = f"{MAX_TURNS} turns did not suffice"
        return found

    def _at(self, state: Vector) -> Policy:
        """The policy whose logits are moved by state/metric."""
        if not state.any():
            return self._original
        q = self._original.copy()
        log_odds = self._log_odds + state / self._metric
        q[self._free] = np.stack([expit(log_odds), expit(-log_odds)], axis=1)
        return q

    def _slope(self, q: Policy) -> Slope | None:
        """That of a policy, or None where there is none, and the reason."""
        self.reason = ""
        if q is self._original:
            return self.before
        self._bar.update()
        try:
            found = self._slope_of(self._policy.assign(q=self._policy["q"].copy(data=q)))
        except ConvergenceError as error:
            found = str(error)
        if isinstance(found, str):
            self.reason = found
            return None
        self._bar.set_postfix_str(f"{found.value:.4g} → {self._end:.4g}")
        return found

    def _turned(self, q: Policy, slope: Slope, value: float) -> Vector | None:
        """The state with μ g/m at which the linearised value is as wanted, or None if it is so for no μ."""
        g, said = slope.derivative[self._free], q[self._free, 0]
        tilt = g / slope.weight[self._free]

        def excess(mu: float) -> float:
            return float(slope.value - value + g @ (expit(self._log_odds + mu * tilt) - said))

        gain = float(g @ (tilt * self._original[self._free].prod(1)))
        mu = -excess(0.0) / gain if gain > 0 else 0.0
        for _ in range(DOUBLINGS if gain > 0 else 0):
            if excess(mu) * mu >= 0:
                mu = root_scalar(excess, bracket=(0.0, mu), xtol=max(1e-14 * abs(mu), 1e-300)).root
                return mu * tilt * self._metric
            mu *= 2
        self.reason = "no change of the answers that have a probability above 0 suffices"
        return None
