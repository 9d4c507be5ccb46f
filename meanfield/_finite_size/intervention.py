"""The smallest change of what agents say that moves a population to the other convention."""

from __future__ import annotations

import xarray as xr
from tqdm import tqdm

from meanfield._finite_size.changed_policy import changed_policy
from meanfield._finite_size.law_path import LawPath, NoPath, law_path, reached, signed_law_path
from meanfield._finite_size.least_change import STATIONARY, Changed, LeastChange, Slope, SlopeOf, weights_of
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._population.population import as_population
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import name_of, single_policy
from meanfield.toolbox._arguments import real_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import ConvergenceError, InputError

LARGEST_KAPPA = 0.5  # with which groups of 24 end at the other word with a chance of 99 %
CERTAIN = 1e-3  # κ, against the one before, from which its sign is checked by the rate equation


def intervention(policy: xr.Dataset, *, kappa: float = 0.0, progress: bool = False) -> xr.Dataset:
    """The smallest change of a two-word policy that makes the other word strong.

    A change costs Σ_i m_i KL(q'(i) || q(i)). The Kullback-Leibler divergence says how unlike the answers in memory i
    are before and after, and the weight m_i how often agents have this memory while their first convention is decided:
    averaged over the path of least action of the changed policy, with times weighted by their part of the action. So
    the cost is the relative entropy for each answer given there, by which the changed agents could be told from the
    original ones. (Weights at an attractor would count memories of agents who have agreed already, and weights of the
    original path would let agents change freely in memories that occur only after the change.)

    The result is stationary, found from the original policy: q'(word | i) ∝ q(word | i) exp(±μ g_i/m_i) with one μ for
    all memories and the derivative g of κ at q'. To first order no policy nearby that has the same κ costs less with
    these weights. Whether a quite different one does is not checked.

    Answers of probability 0 stay at 0: their first appearance would cost infinitely much.

    Parameters
    ----------
    policy
        One policy, of two words, with a group-size law.
    kappa
        κ of the changed policy, from 0 to 1/2: N agents with empty memories then end at the other word with the chance
        Φ(κ√N). With 0 an infinite population stands at the boundary between both words.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `state`, the memories with the largest costs first, and `word`. It is a policy that every function
    takes, with

    - `q` (state, word), the changed probabilities;
    - `memory`, as 'a/b b/b': own/partner's word, oldest first; `change` of the first word's probability;
    - `divergence` KL(q'(i) || q(i)) in nats, `weight` m_i, at least 1e-9, and `cost`, their product; their sum
      `total_cost`;
    - `kappa_before` and `kappa_after`, negative where `other_word` instead of `strong_word` is strong;
    - `derivative` and `derivative_after`, of this κ with respect to the probability of the first word.

    attrs["residual"] is what a further iteration would change, relative to the whole change.

    Raises
    ------
    InputError
        If the policy has more than two words, there is no group-size law or κ is infinite, or `kappa` is out of range.
    ConvergenceError
        If there is no such change, or none is found, in a number of iterations that is bounded; its `best` is κ of the
        policy.

    See Also
    --------
    sensitivity : the derivatives
    group_size_law : κ

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> changed = meanfield.intervention(policy, kappa=0.1)
    >>> meanfield.group_size_law(changed)["strong_word"].item()
    'B'
    >>> changed["memory"].values[:3].tolist(), changed["change"].values[:3].round(3)
    (['B/A B/A', 'A/B A/B', 'empty'], array([-0.092, -0.087, -0.016]))
    """
    policy = single_policy(policy)
    if policy.sizes["word"] != 2:
        raise InputError(f"policy has {policy.sizes['word']} words: expected 2 for interventions")
    kappa = real_number("kappa", kappa, least=0, most=LARGEST_KAPPA)
    law = law_path(policy)
    if isinstance(law, NoPath):
        raise InputError(f"policy has no finite κ above 0: {law.reason}")
    with tqdm(desc="intervention", unit="policy", disable=not progress, leave=False) as bar:
        search = LeastChange(policy, _slopes(law, kappa), _slope(law), -kappa, bar)
        changed = search.found()
    if changed is None or changed.residual > 10 * STATIONARY:
        raise _not_found(law, kappa, search.reason if changed is None else f"residual {changed.residual:.1g}")
    result = _label(policy, law, search.before, changed)
    if (
        kappa > CERTAIN * law.path.kappa
        and reached(as_population(single_policy(result)), fixed_points(result)) != 2 - law.strong
    ):
        raise _not_found(law, kappa, "the rate equation does not lead to the other word")
    result = result.assign_attrs(policy=name_of(policy))
    return stamp(result, "intervention", policy, kappa=kappa)


def _not_found(law: LawPath, kappa: float, reason: str) -> ConvergenceError:
    return ConvergenceError(
        f"no smallest change from kappa = {law.path.kappa:.3g} to {-kappa:.3g} was found ({reason}): "
        f"a kappa nearer to 0 asks for less",
        best=law.path.kappa,
    )


def _slopes(law: LawPath, kappa: float) -> SlopeOf:
    """Those of κ, negative if the other word is strong."""
    scale = law.path.kappa + kappa

    def slope_of(policy: xr.Dataset) -> Slope | str:
        found = signed_law_path(policy, law.strong, scale)
        return found.reason if isinstance(found, NoPath) else _slope(found)

    return slope_of


def _slope(law: LawPath) -> Slope:
    (derivative,), (passed,) = law.path.slope()
    return Slope(law.path.kappa, derivative, weights_of(passed))


def _label(policy: xr.Dataset, law: LawPath, before: Slope, changed: Changed) -> xr.Dataset:
    result = changed_policy(policy, before, changed, value="κ", path="the path of least action")
    columns = {
        "kappa_before": ((), law.path.kappa, "κ before"),
        "kappa_after": ((), changed.slope.value, "κ after, negative for the other word"),
    }
    result = result.merge(labelled(columns))
    for name, word in zip(("strong_word", "other_word"), law.words, strict=True):
        result[name] = ((), word, {"long_name": name.replace("_", " ")})
    return result
