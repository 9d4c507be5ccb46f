"""Rates that are functions of the composition: programs that are compiled once for all functions of one form.

Models along a parameter b hold functions such as ``lambda x: b * x["I"]``, a new one for each b. Traced, they are one
program of the composition and of the numbers that they hold, which are taken out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun
from jax.tree_util import Partial
from jaxtyping import Float

from meanfield.core._export import in_double_precision
from meanfield.core._game import Array

Rate = Callable[[Mapping[str, Any]], Any]
_programs: dict[Any, Program] = {}


class Program:
    """The rates as a function of the numbers in them and of the composition."""

    def __init__(self, traced: Jaxpr) -> None:
        self.traced = traced

    def __call__(self, numbers: list[Array], x: Float[Array, " states"]) -> Float[Array, " rates"]:
        found = jaxpr_as_fun(ClosedJaxpr(self.traced, numbers))(*x)
        return jnp.stack([jnp.asarray(one, x.dtype) for one in found])


def rates_of(functions: Sequence[Rate], names: Sequence[str]) -> Partial:
    """All rates as one function of the composition, whose form is static and whose numbers are leaves."""

    def together(*x: Array) -> list[Any]:
        return [function(dict(zip(names, x, strict=True))) for function in functions]

    with in_double_precision():
        closed = jax.make_jaxpr(together)(*np.zeros(len(names)))
    traced = closed.jaxpr
    numbers, named = [*closed.consts], [*traced.constvars]
    place = {one: k for k, one in enumerate([*named, *traced.invars])}

    def variable(one: Any) -> Var:
        if not isinstance(one, Literal):
            return one
        numbers.append(np.asarray(one.val, one.aval.dtype))
        named.append(Var(one.aval))
        return named[-1]

    steps, forms = [], [*(one.aval for one in place)]
    for step in traced.eqns:
        read = [*map(variable, step.invars)]
        forms += [step.primitive, *(place.get(one, one.aval) for one in read), *sorted(step.params.items())]
        place |= {one: len(place) + k for k, one in enumerate(step.outvars)}
        steps.append(step.replace(invars=read))
    ends = [*map(variable, traced.outvars)]
    form = (*forms, *(place.get(one, one.aval) for one in ends))
    try:
        hash(form)
    except TypeError:  # of an option of a step
        form = traced
    program = Program(traced.replace(constvars=named, eqns=steps, outvars=ends))
    return Partial(_programs.setdefault(form, program), numbers)


def rates_at(
    rates: Partial, x: Float[np.ndarray, "batch states"]
) -> tuple[Float[np.ndarray, "batch rates"], Float[np.ndarray, "batch rates states"]]:
    """The rates at compositions, and their slopes."""
    with in_double_precision():
        values, slopes = _with_slopes(rates, x)
        return np.asarray(values), np.asarray(slopes)


def values_at(rates: Partial, x: Float[np.ndarray, "batch states"]) -> Float[np.ndarray, "batch rates"]:
    """The rates at compositions."""
    with in_double_precision():
        return np.asarray(_values(rates, x))


@jax.jit
def _values(rates: Partial, x: Array) -> Array:
    return jax.vmap(rates)(x)


@jax.jit
def _with_slopes(rates: Partial, x: Array) -> tuple[Array, Array]:
    return jax.vmap(rates)(x), jax.vmap(jax.jacfwd(rates))(x)
