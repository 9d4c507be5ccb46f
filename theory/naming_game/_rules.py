"""Rules of a physicist's naming game: pure functions from a few parameters to the logits of all memories.

A logit is ln q(first word)/q(second word). Every rule has `empty`, the logit of an empty memory, and `bias`, which it
adds to a response to the memory, so that the rule 'constant' is contained in each (in 'luce' as prior → ∞).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield import InputError, MemorySpace, make_policy
from meanfield.toolbox import one_of, real_number

Array = jax.Array
EVERY = ("empty", "bias")
POSITIVE = ("recency", "sharpness", "exponent", "prior")  # fitted by their logarithms


class Memories(NamedTuple):
    """All memories of a space in numbers: 1 for the first word, -1 for the second, 0 beyond the end of a memory."""

    own: Float[np.ndarray, "states ages"]  # age 0 is the latest interaction
    heard: Float[np.ndarray, "states ages"]

    @classmethod
    def of(cls, space: MemorySpace) -> Memories:
        state, pairs = np.arange(space.n_states), []
        for _ in range(space.memory_length):
            digit = (state - 1) % space.n_digits
            pairs.append(np.where(state > 0, [1.0 - 2 * (digit // 2), 1.0 - 2 * (digit % 2)], 0.0))
            state = np.where(state > 0, (state - 1) // space.n_digits, 0)
        own, heard = np.moveaxis(pairs, 0, -1)
        return cls(own, heard)


def _recent(signs: Array, recency: Array) -> Array:
    """Sum with weights proportional to recency^age, which are 1 together in a full memory."""
    weights = jax.nn.softmax(jnp.log(jnp.clip(recency, 1e-300, 1e300)) * jnp.arange(signs.shape[-1]))
    return (signs * weights).sum(-1)


def _oldest(signs: Array) -> Array:
    last = jnp.maximum(jnp.abs(signs).sum(-1).astype(int) - 1, 0)
    return jnp.take_along_axis(jnp.asarray(signs), last[:, None], -1)[:, 0]


def _share(heard: Array) -> Array:
    """Share of the first word among the heard ones minus the share of the second."""
    return heard.sum(-1) / jnp.maximum(jnp.abs(heard).sum(-1), 1.0)


def _constant(m: Memories) -> Array:
    return jnp.zeros(len(m.own))


def _imitation(m: Memories, strength: Array) -> Array:
    return strength * m.heard[:, 0]


def _best_response(m: Memories, inverse_temperature: Array) -> Array:
    return inverse_temperature * _share(m.heard)


def _win_stay_lose_shift(m: Memories, stay: Array, shift: Array) -> Array:
    return jnp.where(m.own[:, 0] == m.heard[:, 0], stay, -shift) * m.own[:, 0]


def _primacy(m: Memories, own: Array, heard: Array) -> Array:
    return own * _oldest(m.own) + heard * _oldest(m.heard)


def _majority(m: Memories, strength: Array, recency: Array) -> Array:
    return strength * _recent(m.heard, recency)


def _threshold(m: Memories, sharpness: Array, threshold: Array) -> Array:
    against = 0.5 * (jnp.abs(m.own[:, 0]) - m.own[:, 0] * _share(m.heard))
    return sharpness * m.own[:, 0] * (threshold - against)


def _luce(m: Memories, exponent: Array, prior: Array, bias: Array) -> Array:
    def log_propensity(word: int) -> Array:
        count = (m.heard == word).sum(-1)
        powered = jnp.where(count > 0, exponent * jnp.log(jnp.maximum(count, 1)), -jnp.inf)
        return jnp.logaddexp(powered, jnp.log(prior) + word * bias / 2)

    return log_propensity(1) - log_propensity(-1) - bias


def _counts(m: Memories, own: Array, heard: Array, recency: Array) -> Array:
    return _recent(own * m.own + heard * m.heard, recency)


class Rule(NamedTuple):
    """A response to memories, as a function of parameters."""

    respond: Callable[..., Array]
    own: tuple[str, ...]  # parameters beside `EVERY`
    takes_bias: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        return EVERY + self.own


RULES: dict[str, Rule] = {
    "constant": Rule(_constant, ()),
    "imitation": Rule(_imitation, ("strength",)),
    "best_response": Rule(_best_response, ("inverse_temperature",)),
    "win_stay_lose_shift": Rule(_win_stay_lose_shift, ("stay", "shift")),
    "primacy": Rule(_primacy, ("own", "heard")),
    "majority": Rule(_majority, ("strength", "recency")),
    "threshold": Rule(_threshold, ("sharpness", "threshold")),
    "luce": Rule(_luce, ("exponent", "prior"), takes_bias=True),
    "counts": Rule(_counts, ("own", "heard", "recency")),
}
PARAMETERS = tuple(dict.fromkeys(name for rule in RULES.values() for name in rule.parameters))


def natural(coordinates: Float[Array, " parameters"], rule: str) -> list[Float[Array, ""]]:
    """Parameters of a rule: exponentials of the coordinates of positive ones."""
    named = zip(RULES[rule].parameters, coordinates, strict=True)
    return [jnp.exp(value) if name in POSITIVE else value for name, value in named]


def logits(parameters: Iterable[Float[Array, ""]], rule: str, memories: Memories) -> Float[Array, " states"]:
    """Logits of a rule in all memories."""
    empty, bias, *own = parameters
    response = RULES[rule].respond(memories, *own, *([bias] if RULES[rule].takes_bias else []))
    return jnp.where(memories.own[:, 0] == 0, empty, bias + response)


@partial(jax.jit, static_argnames="rule")
def expanded_logits(points: jax.Array, memories: Memories, rule: str) -> tuple[jax.Array, ...]:
    """The logits (points, states) at several points, with first and second derivatives, which are the last axes."""

    def value(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        logit = logits(natural(point, rule), rule, memories)
        return logit, logit

    def slope(point: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        slopes, logit = jax.jacfwd(value, has_aux=True)(point)
        return slopes, (logit, slopes)

    def at(point: jax.Array) -> tuple[jax.Array, ...]:
        bends, (logit, slopes) = jax.jacfwd(slope, has_aux=True)(point)
        return logit, slopes, bends

    return jax.vmap(at)(points)


def rule_policy(rule: str, parameters: Mapping[str, float], words: Sequence[str], *, memory_length: int) -> xr.Dataset:
    """The policy of agents who play a rule, for two words.

    Parameters
    ----------
    rule
        Name of a rule of `fit_rule`, which describes them and their parameters.
    parameters
        A value for each parameter of the rule; recency, sharpness, exponent and prior are above 0.
    words
        The two words, the first one first.
    memory_length
        H.

    Returns
    -------
    Policy, as from `meanfield.make_policy`.

    Raises
    ------
    InputError
        If the rule is unknown, or a parameter is missing, unknown or out of range.

    See Also
    --------
    fit_rule : the inverse

    Examples
    --------
    >>> from theory.naming_game import rule_policy
    >>> imitation = {"empty": 0.0, "bias": 0.0, "strength": 2.0}
    >>> rule_policy("imitation", imitation, ["A", "B"], memory_length=1)["q"].sel(word="A").values.round(2)
    array([0.5 , 0.88, 0.12, 0.88, 0.12])
    """
    names = RULES[one_of("rule", rule, RULES)].parameters
    if not isinstance(parameters, Mapping) or set(parameters) != set(names):
        raise InputError(f"parameters = {parameters!r}: expected a mapping of {', '.join(names)} to numbers")
    space = MemorySpace(2, memory_length)
    values = [
        real_number(f"parameters[{name!r}]", parameters[name], above=0 if name in POSITIVE else None) for name in names
    ]
    with jax.enable_x64(True):
        first = jax.nn.sigmoid(logits(jnp.array(values), rule, Memories.of(space)))
        return make_policy(np.asarray(first), words)
