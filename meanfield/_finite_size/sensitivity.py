"""Which memories make the collective bias: derivatives of collective quantities with respect to the policy.

All are adjoint derivatives: the solution of one problem gives the derivatives with respect to all S entries of the
policy. κ is differentiated along its path (`action_rates`), the others through one stationary law (`poisson`).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield._finite_size.law_path import NoPath, law_path
from meanfield._finite_size.poisson import PoissonEquation, eigenvalue_response, polished_fold, share_response
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._parameters.critical_mass import critical_mass
from meanfield._population.memory import MemorySpace
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import labels_of, name_of, single_policy, space_of, word_index, words_of
from meanfield._population.tabulation import named_memories, text_of
from meanfield.toolbox._errors import InputError

NEEDS = {"kappa": None, "eigenvalue": "fixed_point", "word_share": "fixed_point", "critical_mass": "word"}

Columns = dict[str, np.ndarray]


def sensitivity(policy: xr.Dataset, *, of: str, fixed_point: int | None = None, word: str | None = None) -> xr.Dataset:
    """The derivative of a collective quantity of a two-word policy with respect to what agents say in each memory.

    dq(i) raises the probability of the first word in memory i by dq and lowers that of the second by as much. A memory
    with an exact 0 or 1 has a one-sided derivative; that of κ is taken at 1e-14 instead of 0.

    Parameters
    ----------
    policy
        One policy, of two words.
    of
        - 'kappa': κ of the group-size law, ≥ 0 whichever word is strong (derivatives to about 1e-4 of the largest);
        - 'eigenvalue': real part of the leading eigenvalue of a fixed point, which moves with the policy;
        - 'word_share': share of the first word at a fixed point;
        - 'critical_mass': fraction of agents committed to `word` at which the old state vanishes in a fold.
    fixed_point
        Number of the fixed point, as in `fixed_points(policy)`; for 'eigenvalue' and 'word_share'.
    word
        Word of the committed agents; for 'critical_mass'.

    Returns
    -------
    Dataset over `state` with

    - `derivative` with respect to q(i), and `memory`, a label as 'a/b b/b': own/partner's word, oldest first;
    - `weight`, the fraction of agents in the memory: at the fixed point; among the uncommitted at the fold; for κ
      averaged over the path of least action, with times weighted by their part of the action;
    - for 'eigenvalue' `direct`, the derivative at an unmoved fixed point;
    - for 'kappa' `bias`, half of q(first | i) - q(second | i with the words exchanged), and `contribution` = derivative
      · bias. A policy that treats both words alike has κ = 0, so contributions sum to κ up to bias³; for the eleven
      strongly biased pairs of GPT-4o the sum is within 14 % of κ.

    attrs["value"] is the quantity itself.

    Raises
    ------
    InputError
        If the policy has more than two words, an argument is missing or out of place, there is no finite κ or no fold,
        the fixed point is marginal or its leading eigenvalue not simple, or agents hardly ever leave some habit.
    ConvergenceError
        If an iteration does not end; its `best` is the value of the critical mass, without its derivative.

    See Also
    --------
    group_size_law, fixed_points, critical_mass : the quantities themselves

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> change = meanfield.sensitivity(policy, of="word_share", fixed_point=0)
    >>> round(change.attrs["value"], 3)
    0.526
    >>> top = change.isel(state=change["derivative"].argmax("state"))
    >>> top["memory"].item(), top["derivative"].round(4).item()  # more "his" here makes most of it everywhere
    ('his/his his/his his/his his/his his/his', 0.0028)
    """
    policy = single_policy(policy)
    space = space_of(policy)
    if space.n_words != 2:
        raise InputError(f"policy has {space.n_words} words: expected 2 for sensitivities")
    _validate_options(of, fixed_point, word)
    if of == "kappa":
        value, columns = _kappa(policy, space)
    elif of == "critical_mass":
        value, columns = _critical_mass(policy, space, word or "")
    else:
        value, columns = _at_fixed_point(policy, space, of, fixed_point or 0)
    result = _label(policy, space, of, columns).assign_attrs(policy=name_of(policy), of=of, value=float(value))
    return stamp(result, "sensitivity", policy, fixed_point=fixed_point, word=word)


def _validate_options(of: str, fixed_point: int | None, word: str | None) -> None:
    if of not in NEEDS:
        raise InputError(f"of = {of!r}: expected one of {', '.join(NEEDS)}")
    for name, value in (("fixed_point", fixed_point), ("word", word)):
        needed = NEEDS[of] == name
        if needed != (value is not None):
            raise InputError(f"{name} = {value!r}: expected {'a value' if needed else 'None'} for of = {of!r}")


def _label(policy: xr.Dataset, space: MemorySpace, of: str, columns: Columns) -> xr.Dataset:
    units = "1/time" if of == "eigenvalue" else "1"
    labels = {
        "derivative": (f"derivative of {of} with respect to q(first word)", units),
        "weight": ("fraction of agents with this memory", "1"),
        "direct": ("derivative at an unmoved fixed point", units),
        "bias": ("half of what q(first) differs by from q(second) with the words exchanged", "1"),
        "contribution": ("derivative times bias", units),
        "memory": ("own word/partner's word, oldest first", ""),
    }
    memory = [text_of(one) for one in named_memories(space, words_of(policy))]
    data = {
        name: ("state", values, dict(zip(("long_name", "units"), labels[name], strict=True)))
        for name, values in {**columns, "memory": np.array(memory, dtype=str)}.items()
    }
    return xr.Dataset(data, coords={**labels_of(policy), "state": np.arange(space.n_states)})


def _at_fixed_point(policy: xr.Dataset, space: MemorySpace, of: str, number: int) -> tuple[float, Columns]:
    points = fixed_points(policy)
    if not isinstance(number, (int, np.integer)) or not 0 <= number < points.sizes["fixed_point"]:
        raise InputError(f"fixed_point = {number}: expected 0 to {points.sizes['fixed_point'] - 1}")
    point = points.isel(fixed_point=number)
    if point["stability"].item() == "marginal":
        raise InputError(f"fixed_point = {number} is marginal: expected a stable or unstable one")
    q, x = policy["q"].values, point["composition"].values
    equation = PoissonEquation(q, x, x @ q, space)
    if of == "word_share":
        response = share_response(equation, q, x, x @ q, space)
        return response.share, {"derivative": response.gradient / (1 - response.slope), "weight": x}
    eigenvalue = eigenvalue_response(equation, q, x, space)
    total = eigenvalue.direct + eigenvalue.indirect
    return eigenvalue.value.real, {"derivative": total, "weight": x, "direct": eigenvalue.direct}


def _critical_mass(policy: xr.Dataset, space: MemorySpace, word: str) -> tuple[float, Columns]:
    index = word_index(policy, word)
    found = critical_mass(policy, word=word)
    if found.attrs["transition"] != "fold":
        raise InputError(f"word = {word!r}: expected one with a fold, but {found.attrs['reason']}")
    first, second = np.log(found["word_share"].values)
    fold = polished_fold(policy["q"].values, space, index, float(first - second))
    return fold.committed, {"derivative": fold.gradient, "weight": fold.composition}


def _kappa(policy: xr.Dataset, space: MemorySpace) -> tuple[float, Columns]:
    law = law_path(policy)
    if isinstance(law, NoPath):
        raise InputError(f"policy has no finite κ: {law.reason}")
    derivative, weight = law.path.slope()
    q = policy["q"].values
    exchanged = [space.state([(1 - a, 1 - b) for a, b in space.memory(i)]) for i in range(space.n_states)]
    bias = (q[:, 0] - q[exchanged, 1]) / 2
    columns = {"derivative": derivative, "weight": weight, "bias": bias, "contribution": derivative * bias}
    return law.path.kappa, columns
