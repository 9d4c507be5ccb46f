"""A smooth surrogate of the finite-agent simulator, in JAX.

It differs from [002] Appendix E in three ways that make it differentiable:

- All agents listen at once, 16 times, instead of 16 times on average.
- A message ±1 becomes a normal number with the mean and variance of the other agents' messages.
- The last message is not drawn: given all before it, agents vote for the truth independently with known
  probabilities. The number of votes is taken as normal, with a continuity correction.

Fields are quantiles of the mixture at fixed uniform numbers. For Appendix E at N = 4 to 128 the largest error of an
endpoint's probability is 0.05 to 0.16, depending on the draws (eight seeds).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from meanfield import InputError
from theory.flag_game.mechanism1._coordinates import FARTHEST, Coordinates, theta_at
from theory.flag_game.mechanism1._endpoints import EndpointCounts, endpoints_of_votes
from theory.flag_game.mechanism1._likelihood import varying_part
from theory.flag_game.mechanism1._parameters import component_weights

SLOTS = 2**14  # agents drawn for each N
CHUNK = 4  # slots that are summed before populations are: what agents hear is then 16 times fewer products
GRID = 86  # values of h in each component, between which the mixture's quantiles are interpolated
REACH = 5.0  # standard deviations of a component that its values cover
LEAST_SMOOTH = 1e-5
LARGEST_DRAWS = 2**30  # bytes
LEAST_DENSITY = 1e-12  # of a field
LEAST_WIDTH = 1e-3  # keeps quantiles and probabilities smooth where a width goes to zero
SEARCH_STEPS = 60
FIRST_STEP = 0.1  # of the search, in coordinates; it falls to 0 along a cosine


class Draws(NamedTuple):
    """Random numbers for populations of K sizes, the same for all parameters.

    Populations lie one after the other in the slots, each from the start of a chunk; slots between them are idle.
    """

    n_agents: np.ndarray  # (K,)
    uniform: np.ndarray  # (K, slots, rows), for the fields
    normal: np.ndarray  # (rounds - 1, K, slots, rows), for all messages but the last
    together: np.ndarray  # (K, chunks, chunks): 1 where two chunks belong to one population
    weight: np.ndarray  # (K, slots, 1): 1 over the number of agents, 0 in idle slots
    thresholds: np.ndarray  # (K, 4) numbers of votes at which classes begin


def make_draws(sizes: tuple[int, ...], rounds: int, seed: int, agents: int = SLOTS) -> Draws:
    """Draws for about `agents` agents at each N.

    Half of the populations mirror the draws of the other half, which reduces the variance.
    """
    rounds, slots = max(rounds, 1), -(-max(sizes) // CHUNK) * CHUNK
    half = (len(sizes), slots, max(1, agents // (2 * slots)))
    if (needed := 8 * 2 * np.prod(half, dtype=float) * rounds) > LARGEST_DRAWS:
        raise InputError(
            f"N = {max(sizes)}: the fit would need {needed / 2**30:.1f} GiB for {rounds} rounds of messages; "
            f"expected sizes and rounds for which it needs at most {LARGEST_DRAWS / 2**30:g} GiB"
        )
    rng = np.random.default_rng(seed)
    uniform, normal = rng.random(half), rng.standard_normal((rounds - 1, *half))
    uniform, normal = np.concatenate([uniform, 1 - uniform], axis=-1), np.concatenate([normal, -normal], axis=-1)
    n = np.array(sizes)[:, None]
    room = -(-n // CHUNK) * CHUNK
    population, place = np.divmod(np.arange(slots), room)
    placed = np.where((place < n) & (population < slots // room), population, -1)
    chunks = placed[:, ::CHUNK]  # the first slot of a chunk is idle only if all are
    together = (chunks[:, :, None] == chunks[:, None, :]) & (chunks[:, :, None] >= 0)
    used = (placed >= 0)[..., None]
    weight = used / (used.sum(axis=1, keepdims=True) * uniform.shape[-1])
    return Draws(
        n[:, 0] * 1.0, uniform, normal, together.astype(float), weight, np.array([_thresholds(n) for n in sizes])
    )


def _thresholds(n: int) -> list[float]:
    """The numbers of votes for the truth above a wrong consensus, at a correct one, at and above polarised ends."""
    correct, wrong, polarized = (np.flatnonzero(endpoints_of_votes(n) == k) for k in range(3))
    return [wrong[-1] + 1.0, float(correct[0]), float(polarized[0]), polarized[-1] + 1.0]


class Surrogate:
    """The surrogate as a function of coordinates: NumPy arrays in and out."""

    def __init__(self, coordinates: Coordinates, draws: Draws) -> None:
        with jax.enable_x64(True):
            self.given = coordinates.free, coordinates.held.theta, jax.device_put(draws)

    def moments(self, point: np.ndarray) -> np.ndarray:
        """Probabilities of the four endpoints and the mean share of votes for the truth, shape (K, 5)."""
        return self._run(_moments, point)

    def slopes(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The moments (K, 5) and their Jacobian (K, 5, P)."""
        jacobian, moments = self._run(_slopes, point)
        return moments, jacobian

    def carried(self, measured: EndpointCounts) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Slopes of other moments, as a function of a point and its moments."""
        return lambda point, moments: transferred(*self.slopes(point), moments, measured.possible)

    def search(self, start: np.ndarray, measured: EndpointCounts) -> np.ndarray:
        """The best point that Adam (Kingma and Ba 2015) meets on the log-likelihood.

        Its steps of fixed size pass ridges on which Fisher scoring stops.
        """
        return self._run(_search, start, measured)

    def _run(self, program: Callable, *values: Any) -> Any:
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, program(*self.given, *values))


@partial(jax.jit, static_argnums=0)
def _moments(free: tuple[str, ...], held: jax.Array, draws: Draws, point: jax.Array) -> jax.Array:
    return surrogate_moments(theta_at(free, held, point), draws)


@partial(jax.jit, static_argnums=0)
def _slopes(free: tuple[str, ...], held: jax.Array, draws: Draws, point: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.jacfwd(lambda at: (_moments(free, held, draws, at),) * 2, has_aux=True)(point)


@partial(jax.jit, static_argnums=0)
def _search(
    free: tuple[str, ...], held: jax.Array, draws: Draws, start: jax.Array, measured: EndpointCounts
) -> jax.Array:
    adam = optax.adam(optax.cosine_decay_schedule(FIRST_STEP, SEARCH_STEPS))
    score = jax.value_and_grad(lambda at: -varying_part(_moments(free, held, draws, at), measured))

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        point, state, best, lowest = carry
        value, gradient = score(point)
        usable = jnp.isfinite(value) & jnp.isfinite(gradient).all()
        better = usable & (value < lowest)
        best, lowest = jnp.where(better, point, best), jnp.where(better, value, lowest)
        move, state = adam.update(jnp.where(usable, gradient, 0.0), state)
        return (jnp.clip(point + move, start - FARTHEST, start + FARTHEST), state, best, lowest), None

    (_, _, best, _), _ = jax.lax.scan(step, (start, adam.init(start), start, jnp.inf), None, SEARCH_STEPS)
    return best


def surrogate_moments(theta: jax.Array, draws: Draws) -> jax.Array:
    """Probabilities of the four endpoints and the mean share of votes for the truth (K, 5), from PARAMETERS (14,)."""
    return jax.vmap(partial(_of_one_size, theta), in_axes=(Draws(0, 0, 1, 0, 0, 0),))(draws)


def _of_one_size(theta: jax.Array, draws: Draws) -> jax.Array:
    n, (J, beta, alpha) = draws.n_agents, theta[-3:]
    h, one, used = _fields(theta, draws), 1 + LEAST_WIDTH**2, draws.weight > 0

    def total(x: jax.Array) -> jax.Array:
        """Sums over the population of each agent, shape (slots, rows)."""
        sums = draws.together @ jnp.where(used, x, 0.0).reshape(-1, CHUNK, x.shape[-1]).sum(axis=1)
        return jnp.broadcast_to(sums[:, None], (len(sums), CHUNK, sums.shape[-1])).reshape(x.shape)

    def mean_of_others(belief: jax.Array) -> jax.Array:
        said = jnp.tanh(beta * belief)
        mean = (total(said) - said) / (n - 1)
        return jnp.where(used, mean, 0.0)  # of idle slots it could pass 1, whose NaN would spoil derivatives in reverse

    @jax.checkpoint  # a derivative in reverse then keeps beliefs only, and is twice as fast
    def listen(belief: jax.Array, z: jax.Array) -> tuple[jax.Array, None]:
        mean = mean_of_others(belief)
        heard = mean + z * jnp.sqrt(one - mean**2)
        return belief + alpha * (h + J * heard - belief), None

    belief, _ = jax.lax.scan(listen, h, draws.normal)
    mean = mean_of_others(belief)
    last = belief + alpha * (h + J * mean - belief)
    # With J or α near 0 the last message hardly counts, and votes are nearly decided before it.
    votes = _cdf(last / (alpha * J * jnp.sqrt(one - mean**2) + LEAST_WIDTH))
    number, width = total(votes), jnp.sqrt(total(votes * (1 - votes)) + LEAST_WIDTH)
    below = _cdf((draws.thresholds[:, None, None] - 0.5 - number) / width)
    wrong, not_right, low, high = (draws.weight * below).sum(axis=(1, 2))
    share, polar = (draws.weight * number).sum() / n, high - low
    return jnp.stack([1 - not_right, wrong, polar, not_right - wrong - polar, share])


def _fields(theta: jax.Array, draws: Draws) -> jax.Array:
    """Quantiles of the mixture at the uniform numbers, interpolated; their derivatives follow from F(h; θ) = u."""
    weights = component_weights(theta[:5], draws.n_agents)
    means, sds = theta[5:11:2], theta[6:11:2] + LEAST_WIDTH
    steps = jnp.linspace(-REACH, REACH, GRID)
    grid = jax.lax.stop_gradient(jnp.sort(jnp.ravel(means[:, None] + sds[:, None] * steps)))

    def mixture(h: jax.Array) -> jax.Array:
        T, R, neutral = (w * _cdf((h - m) / s) for w, m, s in zip(weights, means, sds, strict=True))
        return T + R + neutral

    def between(h: jax.Array) -> jax.Array:
        return (mixture(h) - mixture(grid[0])) / (mixture(grid[-1]) - mixture(grid[0]))

    h = jax.lax.stop_gradient(jnp.interp(draws.uniform, between(grid), grid))
    level, density = jax.jvp(between, (h,), (jnp.ones_like(h),))
    density = jax.lax.stop_gradient(jnp.maximum(density, LEAST_DENSITY))
    return h - (level - jax.lax.stop_gradient(level)) / density


def _cdf(x: jax.Array) -> jax.Array:
    """Φ(x) to 2e-4. Source: Page 1977, Applied Statistics 26, 75."""
    return 0.5 * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def transferred(surrogate: np.ndarray, jacobian: np.ndarray, moments: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """The surrogate's Jacobian (K, 5, P), carried over to other moments (K, 5) of the same parameters.

    Space mapping (Bandler et al. 1994, IEEE Trans. Microw. Theory Tech. 42, 2536) assumes that two quantities change
    little: the ratio of each endpoint's probability, before normalisation, to the surrogate's, and the difference of
    means.
    """
    relative = jacobian[:, :4] / np.maximum(surrogate[:, :4], LEAST_SMOOTH)[..., None]
    relative = np.where(possible[..., None], relative, 0.0)
    mean = np.einsum("ki,kip->kp", moments[:, :4], relative)
    return np.concatenate([moments[:, :4, None] * (relative - mean[:, None]), jacobian[:, 4:]], axis=1)


def correction(surrogate: np.ndarray, moments: np.ndarray, possible: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ratio (K, 4) and offset (K,) by which `corrected` turns the surrogate's moments into these."""
    ratio = np.where(possible, moments[:, :4] / np.maximum(surrogate[:, :4], LEAST_SMOOTH), 0.0)
    return ratio, moments[:, 4] - surrogate[:, 4]


def corrected(surrogate: np.ndarray, ratio: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The surrogate's moments (K, 5) with endpoints times `ratio` (K, 4), normalised, and means plus `offset` (K,)."""
    xp = surrogate.__array_namespace__()
    raised = xp.maximum(surrogate[:, :4], LEAST_SMOOTH) * ratio
    return xp.concat([raised / raised.sum(axis=1, keepdims=True), surrogate[:, 4:] + offset[:, None]], axis=1)
