"""Gradients of functions that other rooms write for an array namespace, by JAX, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

Function = Callable[..., jax.Array]


def compiled(function: Function) -> Callable[..., np.ndarray]:
    """A compiled version of a `function` of arrays, as `value_and_gradient` takes it, that returns a NumPy array."""
    fast = jax.jit(function)
    return lambda theta, *others: np.asarray(fast(jnp.asarray(theta, dtype=float), *others))


def value_and_gradient(
    function: Function,
) -> Callable[..., tuple[float, Float[np.ndarray, " parameters"]]]:
    """A compiled version of a scalar `function` of its first argument that returns (value, gradient).

    Parameters
    ----------
    function
        Takes an array (parameters,) and further arrays or trees of arrays, which are not differentiated, and returns a
        scalar. It computes with the namespace of its first argument, `theta.__array_namespace__()`, and is compiled
        once for each combination of shapes.

    Returns
    -------
    A function of the same arguments, NumPy arrays or others, that returns a float and an array (parameters,).
    """
    fast = jax.jit(jax.value_and_grad(function))

    def evaluated(theta: np.ndarray, *others: object) -> tuple[float, np.ndarray]:
        value, gradient = fast(jnp.asarray(theta, dtype=float), *others)
        return float(value), np.asarray(gradient)

    return evaluated


def value_and_jacobian(
    function: Function,
) -> Callable[..., tuple[Float[np.ndarray, " values"], Float[np.ndarray, "values parameters"]]]:
    """A compiled version of a vector-valued `function` of its first argument that returns (values, Jacobian).

    Forward mode: it costs as much as `function` once for each parameter, however many values there are. Arguments as in
    `value_and_gradient`.
    """

    def both(theta: jax.Array, *others: object) -> tuple[jax.Array, jax.Array]:
        values, push = jax.linearize(lambda at: function(at, *others), theta)
        return values, jax.vmap(push, out_axes=-1)(jnp.eye(theta.size))

    fast = jax.jit(both)

    def evaluated(theta: np.ndarray, *others: object) -> tuple[np.ndarray, np.ndarray]:
        values, jacobian = fast(jnp.asarray(theta, dtype=float), *others)
        return np.asarray(values), np.asarray(jacobian)

    return evaluated


def iterate(step: Callable[[Any, Any], Any], start: Any, inputs: Any) -> Any:
    """The state after `step(state, input)` for each of `inputs` along their first axis, from `start`.

    Compiled once whatever the number of steps, and differentiable: for loops inside the functions above.
    """
    return jax.lax.scan(lambda state, one: (step(state, one), None), start, inputs)[0]
