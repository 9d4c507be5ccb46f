"""The end of a path to a saddle: the slow curve on which all paths approach it, as a power series.

The linearised path has the momentum s l and passes l·(x - x*) = -s lᵀDl/2λ. On the curve s falls as ds/dt =
ρ(s) = -λs + …, while u = x exp(-p) and v = exp(p) are series in s. Terms follow in turn from Hamilton's equations,

    ρ(s) du/ds = ∂H/∂v - r u,   ρ(s) dv/ds = -∂H/∂u + r v,   l·x(s) = l·x* - s lᵀDl/2λ,

where r(s) keeps the mean of v over each class; those of order k solve linear equations with the Jacobian and kλ. The
series hold as far as fast modes follow the slow one: a path may end
on the curve as soon as they have faded, while its linearised end takes many times 1/λ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import LinearOperator, gmres

from meanfield._numerics.blas import one_blas_thread
from meanfield.core._export import exported
from meanfield.core._path_search import BENT, Arrays, Bend, Ending

linearised = exported("meanfield.core._instanton", "linearised")
linearised_drift = exported("meanfield.core._instanton", "linearised_drift")
flow = exported("meanfield.core._instanton", "flow")

ORDERS = BENT + 1  # of the series
DEGREE, POINTS = 14, 24  # of polynomials in s through Hamilton's equations: higher ones lose digits
NEAR, WEAK = 0.1, 0.5  # change of fractions and of momenta, in all, for the first terms
TOLERANCE, KRYLOV, WRONG = 1e-11, 200, 1e-6  # of linear equations: the error wanted, products, and the error allowed
NEARLY_NOTHING = 5e-4  # part of s
TIMES = 256  # at which the speed on the curve is known
SMALL = 0.1  # a last term, in units of the first, up to which the series hold

Composition = Float[np.ndarray, "kinds states"]
Map = Callable[[Composition], Composition]
Series = Float[np.ndarray, "orders kinds states"]
Orders = Float[np.ndarray, " orders"]


class SaddleCurve(NamedTuple):
    """Coefficients of u(s), v(s) and ds/dt, and the largest s for which they hold."""

    u: Series
    v: Series
    rate: Orders
    farthest: float

    def at(self, s: float | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:
        """u, v and ds/dt."""
        powers = np.power.outer(s, np.arange(len(self.rate)))
        return np.tensordot(powers, self.u, 1), np.tensordot(powers, self.v, 1), powers @ self.rate

    def slope(self, s: float) -> Composition:
        """dv/ds."""
        orders = np.arange(1, len(self.v))
        return np.tensordot(orders * s ** (orders - 1), self.v[1:], 1)

    def later(self, s: float, times: np.ndarray) -> np.ndarray:
        """s after these times, which rise."""
        powers, span = np.arange(len(self.rate)), (0, times[-1])
        return solve_ivp(lambda _, s: [s[0] ** powers @ self.rate], span, [s], t_eval=times, rtol=1e-9, atol=0).y[0]

    def duration(self, s: float) -> float:
        """The time until nearly nothing of s is left; infinite if it does not lead to the saddle."""
        left = s * np.geomspace(NEARLY_NOTHING, 1.0, TIMES)
        speed = -(np.power.outer(left, np.arange(len(self.rate))) @ self.rate) / left
        return float(np.trapezoid(1 / speed, np.log(left / s))) if speed.min() > 0 else np.inf

    def action(self) -> Orders:
        """Coefficients of the part of S that depends on the end: it changes by u·dv."""
        orders = np.arange(len(self.v))
        pairs = np.tensordot(self.u, self.v, ((1, 2), (1, 2))) * orders
        return np.array([0.0, *(np.trace(pairs[::-1], k - len(orders) + 1) / k for k in orders[1:])])

    def bent(self, ends: Ending) -> Ending:
        """The end of paths on this curve."""
        orders, action = np.arange(len(self.v)), self.action()[2:]
        action[0] += ends.width / 2  # which is told apart
        linear = np.cumprod([np.ones_like(ends.left), *(-ends.left / k for k in orders[1:])], axis=0)  # of exp(-s l)
        factor = np.array([np.einsum("kmi,kmi->mi", linear[k::-1], self.v[: k + 1]) for k in orders[2:]])
        return ends._replace(bend=Bend(factor, action, self.farthest))


@one_blas_thread()
def saddle_curve(arrays: Arrays, saddle: Composition, ends: Ending) -> SaddleCurve | None:
    """The curve of a saddle with its linearised end, or None if its equations are not solved."""
    jacobian, common = partial(linearised_drift, arrays, saddle), partial(class_means, saddle)

    def transposed(p: np.ndarray) -> np.ndarray:
        return linearised(arrays, saddle, p)[1]

    def noise(p: np.ndarray) -> np.ndarray:
        return linearised(arrays, saddle, p)[2]

    left, growth, width = ends.left, ends.growth, ends.width
    spread = noise(left)
    right = spread / (left * spread).sum()

    def across(v: Composition) -> Composition:
        return v - right * (left * v).sum()

    def kept(p: Composition) -> Composition:
        p = p - left * (right * p).sum()
        return p - common(p)

    step = _solved(jacobian, across, -growth, growth * right - jacobian(right))
    if step is None:
        return None
    right = right + step
    first = _solved(jacobian, across, growth, -spread)
    if first is None:
        return None
    (u, v), rate = np.zeros((2, ORDERS + 1, *saddle.shape)), np.zeros(ORDERS + 1)
    gauge = np.zeros((ORDERS + 1, len(saddle), 1))  # growth of v and decay of u, which keep each class's mean of v
    gauge[1] = -common(transposed(left))
    v[0], v[1], rate[1] = 1.0, left, -growth
    u[0], u[1] = saddle, first - width * right - saddle * left
    radius = min(NEAR / np.abs(u[1]).sum(), WEAK / np.ptp(left))
    points = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    terms = np.linalg.pinv(np.vander(points, DEGREE + 1, increasing=True))
    for k in range(2, ORDERS + 1):
        powers = np.power.outer(radius * points, np.arange(k))
        us, vs = np.tensordot(powers, u[:k], 1), np.tensordot(powers, v[:k], 1)
        _, by_p, by_x = flow(arrays, us * vs, np.log(vs))
        changes = by_p / vs + us * by_x, -vs * by_x
        weights, known = terms[k] / radius**k, np.arange(2, k)
        moved = rate[known] * (k - known + 1)
        push, pull = (
            np.tensordot(weights, change, 1)
            - np.tensordot(moved, series[k - known + 1], 1)
            + sign * (gauge[1:k] * series[k - 1 : 0 : -1]).sum(0)
            for change, series, sign in zip(changes, (u, v), (-1, 1), strict=True)
        )
        push = push + saddle * pull
        passed = float((left * u[1:k] * v[k - 1 : 0 : -1]).sum())
        beside = _solved(transposed, kept, -k * growth, pull)
        if beside is None:
            return None
        # The part along l, and ds/dt: (1 - k)λ π + ρ = r·pull, -ρ width - lᵀDl π = l·(push + D v) - …
        matrix = [[(1 - k) * growth, 1.0], [-2 * growth * width, -width]]
        across_it = float((left * (push + noise(beside))).sum()) - (k + 1) * growth * passed
        along, rate[k] = np.linalg.solve(matrix, [(right * (pull - common(pull))).sum(), across_it])
        v[k] = beside + along * left
        gauge[k] = -common(pull + transposed(v[k]))
        x1 = u[1] + saddle * v[1]
        following = _solved(jacobian, across, k * growth, rate[k] * x1 - push - noise(v[k]))
        if following is None:
            return None
        u[k] = following - passed * right - saddle * v[k]
        radius = min(WEAK / np.ptp(left), *_radii(u[1 : k + 1]), *_radii(v[1 : k + 1]))
    last = np.concatenate([_radii(u[1:])[-2:], _radii(v[1:])[-2:]])
    return SaddleCurve(u, v, rate, float((SMALL ** (1 / (ORDERS - 1)) * last).min()))


def class_means(x: Composition, p: Composition | Series) -> Float[np.ndarray, "*orders kinds 1"]:
    """The mean of p over the agents of each kind."""
    mass = x.sum(-1, keepdims=True)
    return (p * x).sum(-1, keepdims=True) / np.where(mass == 0, 1, mass)


def _radii(series: Series) -> np.ndarray:
    """The s at which terms of order 2, 3, … are as large as the first."""
    sizes = np.abs(series).max((1, 2))
    return (sizes[0] / np.maximum(sizes[1:], np.finfo(float).tiny)) ** (1 / np.arange(1, len(sizes)))


def _solved(product: Map, within: Map, shift: float, wanted: Composition) -> Composition | None:
    """The solution of (A + shift) v = wanted in a subspace, onto which `within` projects."""
    shape, size = wanted.shape, wanted.size

    def image(v: np.ndarray) -> np.ndarray:
        v = within(v.reshape(shape))
        return (within(product(v)) + shift * v).ravel()

    wanted = within(wanted).ravel()
    operator = LinearOperator((size, size), matvec=image, dtype=float)
    v = gmres(operator, wanted, rtol=TOLERANCE, restart=KRYLOV, maxiter=1)[0]
    known = np.linalg.norm(image(v) - wanted) <= WRONG * np.linalg.norm(wanted)
    return within(v.reshape(shape)) if known else None
