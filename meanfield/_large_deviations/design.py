"""The smallest change of what agents say that gives a collective quantity another value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import rel_entr
from tqdm import tqdm

from meanfield._finite_size.law_path import LawPath, NoPath, law_path, reached, signed_law_path
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.points import Points, all_points
from meanfield._large_deviations.exits import landscape
from meanfield._large_deviations.least_change import STATIONARY, Changed, LeastChange, Slope, SlopeOf
from meanfield._large_deviations.sensitivity import (
    Barrier,
    barrier_of,
    memory_column,
    slope_at_fixed_point,
    slope_of_critical_mass,
    validate_options,
)
from meanfield._numerics.stability import stability
from meanfield._population.population import as_population
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import labels_of, name_of, single_policy, space_of, words_of
from meanfield._population.stacks import as_games
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._columns import Columns, labelled
from meanfield.toolbox._errors import ConvergenceError, InputError

# Of values that a quantity can have; with κ = -0.5 groups of 24 end at the other word with a probability of 99 %
BOUNDS: dict[str, dict[str, float]] = {
    "kappa": {"least": -0.5},
    "word_share": {"above": 0, "below": 1},
    "critical_mass": {"above": 0, "below": 1},
    "barrier": {"above": 0},
}
CERTAIN = 1e-3  # κ, against the one before, from which its sign is checked by the rate equation
RESOLVED = 10.0  # how far a barrier goes, against its error

Found = tuple[Slope, SlopeOf, Columns]


def design(
    policy: xr.Dataset,
    *,
    of: str | Callable[[Any], Any],
    value: float,
    fixed_point: int | None = None,
    word: str | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The smallest change of a policy that gives a collective quantity a wanted value.

    A change costs Σ_i m_i KL(q'(i) || q(i)). The Kullback-Leibler divergence measures how much the answers in memory i
    change, and the weight m_i is the fraction of agents with this memory where the quantity is decided: at the
    fixed point or the fold of the changed policy, or averaged over its path of least action, with times weighted by
    their part of the action. So the cost is the relative entropy per answer: the evidence by which one could tell
    the changed agents from the original ones.

    The result is stationary, found from the original policy: q'(w | i) ∝ q(w | i) exp(μ g_iw/m_i) with one μ for all
    memories and the derivative g of the quantity at q'. To first order no nearby policy with the same value costs less
    with these weights. Whether a very different one does is not checked. Answers of probability 0 stay at 0: their
    first appearance would cost infinitely much.

    Parameters
    ----------
    policy
        One policy; of two words for 'kappa', 'barrier' and 'critical_mass'.
    of
        A quantity of `sensitivity`, 'kappa', 'barrier', 'word_share', 'eigenvalue' or 'critical_mass', or a function
        of the array q (state, word) that JAX can differentiate; then all memories have the same weight.
    value
        Value wanted; a word share and a critical mass lie between 0 and 1, a barrier above 0. κ ≥ -1/2 is
        negative where the word that is weak now becomes strong: with κ = -0.1, N agents with empty memories end at the
        other word with the probability Φ(0.1 √N), and with 0 an infinite population stands at the boundary between both
        words. With a barrier larger by log(factor)/N a convention of N agents lives `factor` times as long, up
        to the change of the prefactor.
    fixed_point, word
        As for `sensitivity`. The changed policy has as many fixed points, or attractors, as before.
    progress
        Show a progress bar. A path takes seconds for memories of five interactions, and a search up to twenty or more.

    Returns
    -------
    Dataset over `state`, the memories with the largest costs first, and `word`. It is a policy that every function
    takes, with

    - `q` (state, word), the changed probabilities;
    - `memory`, as 'a/b b/b': own/partner's word, oldest first; `change` of the first word's probability, for more than
      two words (state, word) of each;
    - `divergence` KL(q'(i) || q(i)) in nats, `weight` m_i, at least 1e-9, and `cost`, their product; their sum
      `total_cost`;
    - `value_before` and `value_after`;
    - `derivative` and `derivative_after`, before and after, as in `sensitivity`;
    - for 'kappa' `strong_word`, by the original policy, and `other_word`.

    attrs["residual"] is the change by a further iteration, relative to the whole change.

    Raises
    ------
    InputError
        If `sensitivity` has no such derivative for this policy, an argument is out of range, or `value` differs from
        the policy's by less than ten times the error of a barrier.
    ConvergenceError
        If no such change exists, or none is found in a bounded number of iterations; its `best` is the value before.

    See Also
    --------
    sensitivity : the derivatives
    group_size_law, lifetime, fixed_points, critical_mass : the quantities

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.98 if lead > 0 else 0.02
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> changed = meanfield.design(policy, of="kappa", value=-0.1)
    >>> meanfield.group_size_law(changed)["strong_word"].item()
    'B'
    >>> changed["memory"].values[:3].tolist(), changed["change"].values[:3].round(3)
    (['B/A B/A', 'A/B A/B', 'empty'], array([-0.076, -0.073, -0.014]))

    A convention that twenty agents keep twice as long:

    >>> lives = meanfield.lifetime(policy, n_agents=20).sel(fixed_point=0)
    >>> longer = meanfield.design(policy, of="barrier", fixed_point=0, value=lives["barrier"].item() + np.log(2) / 20)
    >>> again = meanfield.lifetime(longer, n_agents=20).sel(fixed_point=0)
    >>> (again["lifetime"] / lives["lifetime"]).round(2).item()
    2.02
    """
    policy = single_policy(policy)
    value = real_number("value", value, **BOUNDS.get(of, {}) if isinstance(of, str) else {})
    before, slope_of, columns = _quantity(policy, of, fixed_point, word, value)
    if value == before.value:
        raise InputError(f"value = {value:g}: expected a value other than the policy's own")
    name = of if isinstance(of, str) else getattr(of, "__name__", "of")
    with tqdm(desc="design", unit="policy", disable=not progress, leave=False) as bar:
        search = LeastChange(policy, slope_of, before, value, bar)
        changed = search.found()
    if changed is None or changed.residual > 10 * STATIONARY:
        reason = search.reason if changed is None else f"residual {changed.residual:.1g}"
        raise _not_found(name, before, value, reason)
    result = _label(policy, name, before, changed, columns).assign_attrs(policy=name_of(policy), of=name)
    if of == "kappa" and -value > CERTAIN * before.value:  # one word may lead at both attractors
        start, end = (reached(as_population(one), fixed_points(one)) for one in (policy, single_policy(result)))
        if end not in (0, 2) or end == start:
            raise _not_found(name, before, value, "the rate equation does not lead to the other word")
    options = {"fixed_point": fixed_point, "word": word}
    return stamp(result, "design", policy, value=value, **{k: v for k, v in options.items() if v is not None})


def _not_found(name: str, before: Slope, value: float, reason: str) -> ConvergenceError:
    return ConvergenceError(
        f"no smallest change from {name} = {before.value:.3g} to {value:.3g} was found ({reason}): "
        f"a value nearer to the first asks for less",
        best=before.value,
    )


def _quantity(policy: xr.Dataset, of: str | Callable, number: int | None, word: str | None, value: float) -> Found:
    """The value and slope of the policy, a function that finds them for others, and further columns of the result."""
    if callable(of):
        for option, given in (("fixed_point", number), ("word", word)):
            if given is not None:
                raise InputError(f"{option} = {given!r}: expected None where of is a function")
        return _own(policy, of)
    validate_options(of, number, word, policy.sizes["word"])
    if of == "kappa":
        return _kappa(policy, value)
    if of == "barrier":
        return _barrier(policy, number, value)
    if of == "critical_mass":
        return _critical_mass(policy, str(word))
    return _fixed_point(policy, of, number)


def _own(policy: xr.Dataset, function: Callable) -> Found:
    alike = np.ones(policy.sizes["state"]) / policy.sizes["state"]

    def slope_of(policy: xr.Dataset) -> Slope:
        q = policy["q"].values
        with jax.enable_x64(True):
            value, gradient = jax.value_and_grad(function)(jnp.asarray(q))
        gradient = np.where(q == 0, 0.0, gradient)  # such words stay unsaid
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise InputError(f"of = {value:g}, and its gradient, are not finite: expected a function that is smooth")
        return Slope(float(value), gradient, alike)

    expected = "expected a function of q (state, word) that JAX can differentiate, with one real number"
    try:
        with jax.enable_x64(True):
            given: Any = jax.eval_shape(function, jnp.asarray(policy["q"].values))
    except TypeError as error:
        raise InputError(
            f"of can't be called with an array of JAX ({str(error).splitlines()[0]}): {expected}"
        ) from error
    if getattr(given, "shape", None) != () or given.dtype.kind != "f":
        found = f"an array of shape {given.shape}, {given.dtype}" if hasattr(given, "shape") else type(given).__name__
        raise InputError(f"of returned {found}: {expected}")
    return slope_of(policy), slope_of, {}


def _kappa(policy: xr.Dataset, value: float) -> Found:
    law = law_path(policy)
    if isinstance(law, NoPath):
        raise InputError(law.without_slope("policy"))
    strong, scale = law.strong, abs(law.path.kappa - value)

    def slope(law: LawPath | NoPath) -> Slope:
        if isinstance(law, NoPath):
            raise InputError(law.reason)
        (derivative,), (passed,) = law.path.slope()
        return Slope.of(law.path.kappa, derivative, passed)

    names = zip(("strong_word", "other_word"), law.words, strict=True)
    columns: Columns = {name: ((), word, name.replace("_", " "), "") for name, word in names}
    return slope(law), lambda policy: slope(signed_law_path(policy, strong, scale)), columns


def _barrier(policy: xr.Dataset, number: int | None, value: float) -> Found:
    ground = landscape(policy, None)
    number = ground.numbered(number)
    before = barrier_of(ground, number)
    if isinstance(before, str):
        raise InputError(f"fixed_point = {number}: {before}")
    barrier, error, way = before.value, before.error, abs(value - before.value)
    if way < RESOLVED * error:
        raise InputError(
            f"value = {value:g} differs by {way:.1g} from the barrier {barrier:.3g}, which is known to {error:.1g}: "
            f"expected a larger change"
        )

    def slope(found: Barrier | str) -> Slope:
        if isinstance(found, str):
            raise InputError(found)
        if found.error > way / RESOLVED:
            raise InputError(f"the barrier {found.value:.3g} of a changed policy is known to {found.error:.1g} only")
        return Slope.of(found.value, found.derivative[0], found.weight[0])

    def slope_of(policy: xr.Dataset) -> Slope:
        again = landscape(policy, None)
        stable, n_before = again.attractors, len(ground.attractors)
        if len(stable) != n_before:
            raise InputError(f"the changed policy has {len(stable)} attractors instead of {n_before}")
        away = np.abs(again.compositions[stable] - ground.compositions[number]).sum(1)
        return slope(barrier_of(again, stable[away.argmin()]))

    return slope(before), slope_of, {}


def _critical_mass(policy: xr.Dataset, word: str) -> Found:
    def slope_of(policy: xr.Dataset) -> Slope:
        ((value, found),) = slope_of_critical_mass(as_games(policy), word)
        return Slope.of(value, found["derivative"][0], found["weight"][0])

    return slope_of(policy), slope_of, {}


def _fixed_point(policy: xr.Dataset, of: str, number: int | None) -> Found:
    """The quantity at a fixed point that is followed: by its number, for more than two words the nearest of its kind.

    A changed policy must have fixed points of the same kinds.
    """

    def all_of(policy: xr.Dataset) -> tuple[Points, list[str]]:
        games = as_games(policy)
        (points,) = all_points(games.mixtures, games.names, games.words)
        return points, [str(stability(*one)) for one in zip(points.leading, points.error, strict=True)]

    def slope(policy: xr.Dataset, points: Points, number: int) -> Slope:
        value, found = slope_at_fixed_point(points, as_population(policy).mixture, "policy", of, number)
        return Slope.of(value, found["derivative"][0], found["weight"][0])

    before, kinds = all_of(policy)
    number = whole_number("fixed_point", number, 0, len(kinds) - 1)

    def slope_of(policy: xr.Dataset) -> Slope:
        points, found = all_of(policy)
        if sorted(found) != sorted(kinds):
            raise InputError(f"the changed policy has other fixed points: {', '.join(found)}")
        if policy.sizes["word"] == 2:
            return slope(policy, points, number)
        away = np.abs(points.composition - before.composition[number]).sum((1, 2))
        return slope(policy, points, int(np.where(np.array(found) == kinds[number], away, np.inf).argmin()))

    return slope(policy, before, number), slope_of, {}


def _label(policy: xr.Dataset, name: str, before: Slope, changed: Changed, columns: Columns) -> xr.Dataset:
    original, after = policy["q"].values, changed.slope
    apart, change = rel_entr(changed.q, original).sum(1), changed.q - original
    cost = after.weight * apart
    each = ("state", "word")[: before.derivative.ndim]
    result = labelled(
        {
            "q": (("state", "word"), changed.q, "probability of saying the word"),
            "memory": memory_column(space_of(policy), words_of(policy)),
            "change": (each, change[:, 0] if len(each) == 1 else change, "change of q"),
            "divergence": (("state",), apart, "KL(changed || original)", "nats"),
            "weight": (("state",), after.weight, "fraction of agents with this memory"),
            "cost": (("state",), cost, "weight times divergence", "nats"),
            "derivative": (each, before.derivative, f"derivative of {name} with respect to q, before"),
            "derivative_after": (each, after.derivative, f"derivative of {name} with respect to q, after"),
            "total_cost": ((), cost.sum(), "sum of the costs", "nats"),
            "value_before": ((), before.value, f"{name} before"),
            "value_after": ((), after.value, f"{name} after"),
            **columns,
        },
        coords={**labels_of(policy), "state": np.arange(len(cost))},
    )
    return result.isel(state=np.argsort(-cost, kind="stable")).assign_attrs(residual=changed.residual)
