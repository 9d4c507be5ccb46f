"""Derivatives of collective quantities with respect to the policy: which memories make the collective bias."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from meanfield._finite_size.law_path import NoPath, law_path
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._parameters.critical_mass import critical_mass
from meanfield._population.population import Population, as_population, without_component
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import names_of, word_index
from meanfield._population.stacks import each_of_stack
from meanfield._population.tabulation import named_memories, text_of
from meanfield.core._export import exported
from meanfield.core._game import WordGame
from meanfield.core._space import MemorySpace
from meanfield.core._spectrum import leading_eigenvalues
from meanfield.toolbox._errors import InputError

word_share_gradient = exported("meanfield.core._sensitivity", "word_share_gradient")
eigenvalue_gradient = exported("meanfield.core._sensitivity", "eigenvalue_gradient")
critical_mass_gradient = exported("meanfield.core._sensitivity", "critical_mass_gradient")

LEAST_SHARE = 1e-100  # of a species of which there is nobody
DEFECTIVE = 1e-11  # |l·r|/(|l||r|); derivatives are good to about 1e-16 over this number
NEEDS = {"kappa": None, "eigenvalue": "fixed_point", "word_share": "fixed_point", "critical_mass": "word"}

Columns = dict[str, np.ndarray]


@each_of_stack
def sensitivity(
    policy: xr.Dataset | Population, *, of: str, fixed_point: int | None = None, word: str | None = None
) -> xr.Dataset:
    """The derivative of a collective quantity with respect to what agents say in each memory.

    dq(i) raises the probability of the first word in memory i by dq and lowers that of the second by as much. With more
    than two words, dq(i, w) raises that of word w and lowers those of all others by equal parts. Derivatives are exact
    (`jax.grad` of functions of `meanfield.core`, which differentiate by parameters of your own as well). A memory
    with an exact 0 or 1 has a one-sided derivative; that of κ is taken at 1e-14 instead of 0.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair (a result for each), or for 'eigenvalue', 'word_share' and
        'critical_mass' a population.
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
    Dataset over `state`, for a population (component, state), with

    - `derivative` with respect to q(i) (for more than two words also over `word`), and `memory`, a label as 'a/b b/b':
      own/partner's word, oldest first;
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
        the fixed point is marginal or its leading eigenvalue not simple, or agents have several
        sets of memories that they never leave.

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
    _validate_options(of, fixed_point, word)
    population = as_population(policy)
    if population.space.n_words != 2 and of in ("kappa", "critical_mass"):
        raise InputError(f"policy has {population.space.n_words} words: expected 2 for of = {of!r}")
    if of == "kappa":
        if isinstance(policy, Population):
            raise InputError("policy is a Population: expected one policy for of = 'kappa'")
        value, columns = _kappa(population.policies[0], population.space)
    elif of == "critical_mass":
        value, columns = _critical_mass(population, word or "")
    else:
        value, columns = _at_fixed_point(population, of, fixed_point or 0)
    result = _label(population, of, columns).assign_attrs(policy=population.name, of=of, value=float(value))
    result = without_component(result, policy).assign_coords(names_of(policy))
    return stamp(result, "sensitivity", policy, fixed_point=fixed_point, word=word)


def _validate_options(of: str, fixed_point: int | None, word: str | None) -> None:
    if of not in NEEDS:
        raise InputError(f"of = {of!r}: expected one of {', '.join(NEEDS)}")
    for name, value in (("fixed_point", fixed_point), ("word", word)):
        needed = NEEDS[of] == name
        if needed != (value is not None):
            raise InputError(f"{name} = {value!r}: expected {'a value' if needed else 'None'} for of = {of!r}")


def _label(population: Population, of: str, columns: Columns) -> xr.Dataset:
    units = "1/time" if of == "eigenvalue" else "1"
    labels = {
        "derivative": (f"derivative of {of} with respect to q", units),
        "weight": ("fraction of agents with this memory", "1"),
        "direct": ("derivative at an unmoved fixed point", units),
        "bias": ("half of what q(first) differs by from q(second) with the words exchanged", "1"),
        "contribution": ("derivative times bias", units),
    }
    dims = ("component", "state", "word")
    data = {
        name: (dims[: values.ndim], values, dict(zip(("long_name", "units"), labels[name], strict=True)))
        for name, values in columns.items()
    }
    memory = [text_of(one) for one in named_memories(population.space, population.words)]
    attrs = {"long_name": "own word/partner's word, oldest first", "units": ""}
    return xr.Dataset({**data, "memory": ("state", np.array(memory, dtype=str), attrs)}, coords=population.coords)


def _at_fixed_point(population: Population, of: str, number: int) -> tuple[float, Columns]:
    points = fixed_points(population)
    if not isinstance(number, (int, np.integer)) or not 0 <= number < points.sizes["fixed_point"]:
        raise InputError(f"fixed_point = {number}: expected 0 to {points.sizes['fixed_point'] - 1}")
    point = points.isel(fixed_point=number)
    if point["stability"].item() == "marginal":
        raise InputError(f"fixed_point = {number} is marginal: expected a stable or unstable one")
    x, share = point["composition"].values, point["word_share"].values
    _check_classes(population, tuple(np.flatnonzero(share > 0).tolist()))
    mixture = population.mixture
    game = (*mixture, x * mixture.share[:, None])
    if of == "word_share":
        return float(share[0]), {"derivative": _derivative(word_share_gradient(*game)), "weight": x}
    left, right = _eigenvectors(population, x)
    total, direct = eigenvalue_gradient(*game, left, right)
    columns = {"derivative": _derivative(total), "weight": x, "direct": _derivative(direct)}
    return point["eigenvalue"].item(), columns


def _critical_mass(population: Population, word: str) -> tuple[float, Columns]:
    index = word_index(population.policies[0], word)
    found = critical_mass(population, word=word)
    if found.attrs["transition"] != "fold":
        raise InputError(f"word = {word!r}: expected one with a fold, but {found.attrs['reason']}")
    first, second = np.log(found["word_share"].values)
    mixture = population.with_committed(word, 0.0).mixture
    _check_classes(population, (0, 1))
    share = np.maximum(mixture.share, LEAST_SHARE)
    gradient, x = critical_mass_gradient(mixture.q, share, mixture.committed, first - second, index)
    columns = {"derivative": _derivative(gradient), "weight": x / share[:, None]}
    return found["critical_mass"].item(), columns


def _derivative(gradient: np.ndarray) -> np.ndarray:
    """The derivative by what a word gains and the others lose in equal parts; of two words by what the first gains."""
    n_words = gradient.shape[-1]
    gained = gradient - (gradient.sum(-1, keepdims=True) - gradient) / (n_words - 1)
    return gained[..., 0] if n_words == 2 else gained


def _check_classes(population: Population, heard: tuple[int, ...]) -> None:
    for q in population.mixture.q:
        n_classes = len(closed_classes(q, population.space, heard=heard))
        if n_classes > 1:
            raise InputError(
                f"policy has {n_classes} sets of memories that agents never leave: expected one, since "
                "the stationary distribution jumps when a transition between several opens"
            )


def _eigenvectors(population: Population, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary parts of the leading left and right eigenvectors; InputError if they have no derivatives."""
    mixture = population.mixture
    with jax.enable_x64(True):
        found = leading_eigenvalues(WordGame(*mixture), jnp.asarray(x * mixture.share[:, None]))
    value, left, right = found.values[0], found.left[0], found.right[0]
    overlap = 1 / (np.linalg.norm(left) * np.linalg.norm(right))
    # What an agent has forgotten in H interactions makes J defective at λ = -1, which rounding spreads over a circle.
    forgotten = abs(value + 1) < 5 * np.finfo(float).eps ** (1 / population.space.memory_length)
    if forgotten or not overlap > DEFECTIVE:
        raise InputError(
            f"fixed_point has a defective or degenerate leading eigenvalue {value.real:.6g} (overlap of its "
            f"eigenvectors {overlap:.0e}): expected a simple one, which has derivatives"
        )
    return np.stack([left.real, left.imag]), np.stack([right.real, right.imag])


def _kappa(policy: xr.Dataset, space: MemorySpace) -> tuple[float, Columns]:
    law = law_path(policy)
    if isinstance(law, NoPath):
        raise InputError(f"policy has no finite κ: {law.reason}")
    derivative, weight = law.path.slope()
    q = policy["q"].values
    exchanged = [space.state([(1 - a, 1 - b) for a, b in space.memory(i)]) for i in range(space.n_states)]
    bias = (q[:, 0] - q[exchanged, 1]) / 2
    columns = {"derivative": derivative, "weight": weight, "bias": bias, "contribution": derivative * bias}
    return law.path.kappa, {name: values[None] for name, values in columns.items()}
