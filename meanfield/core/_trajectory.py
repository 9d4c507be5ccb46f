"""Solutions of the rate equation in time, by diffrax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Float, Int, Shaped

from meanfield.core._game import Array, Flow, WordGame, game_of, one_program, word_share
from meanfield.core._pairs import EdgeGame
from meanfield.core._rates import drift

MAX_STEPS = 2**20
FIRST_STEP = 0.1
FORWARD = diffrax.ForwardMode()  # compiles faster
LEAST_SHARE = 1e-100  # of an empty species, which then follows the others unnoticed


class Trajectory(NamedTuple):
    """A solution of the rate equation.

    Attributes
    ----------
    observed
        `observe(x)` at each of the times; after `end_time` it repeats the value at the end.
    end
        The composition at the end.
    end_time
        Time at which the trajectory came to rest, or else the last time of the integration.
    speed
        max|dx/dt| at the end, with each fraction divided by the mass of its class.
    steps
        Number of steps taken.
    successful
        Whether the end was reached within `max_steps` steps.

    See Also
    --------
    trajectory : returns it
    """

    observed: Any
    end: Float[Array, ...]
    end_time: Float[Array, ""]
    speed: Float[Array, ""]
    steps: Int[Array, ""]
    successful: Any


def trajectory(
    game: Flow,
    x: Float[Array, ...],
    times: Float[Array, " times"],
    *,
    max_time: float | Float[Array, ""] | None = None,
    observe: Callable[[Float[Array, ...]], Any] | None = None,
    rtol: float | Float[Array, ""] = 1e-8,
    atol: float | Float[Array, ""] = 1e-11,
    rest: float | Float[Array, ""] = 0.0,
    first_step: float | Float[Array, ""] = FIRST_STEP,
    stiff: bool = False,
    max_steps: int = MAX_STEPS,
    adjoint: diffrax.AbstractAdjoint | None = None,
) -> Trajectory:
    """Follow dx/dt = F(x) from the composition x at time 0.

    Tsitouras' method of order 5, or for stiff games Kvaerno's L-stable one, with adaptive steps. Fractions are divided
    by the mass of their conserved class for the control of errors.

    Parameters
    ----------
    game, x
        The game, and the composition at time 0.
    times
        Increasing times at which to observe.
    max_time
        Time at which the integration ends, at least the last of `times`, which is the default.
    observe
        Function of x; its values at `times` are returned. Default: x itself. Each new function is compiled anew.
    rtol, atol
        Tolerances of the step size control.
    rest
        The integration ends where max|dx/dt| is smaller, with each fraction divided by the mass of its class.
    first_step
        Length of the first step that is tried.
    stiff
        Whether fast and slow rates differ by orders of magnitude.
    max_steps
        Largest number of steps.
    adjoint
        Of diffrax; the default allows `jax.grad`, `diffrax.ForwardMode()` allows `jax.jvp`.

    Examples
    --------
    >>> import jax
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> with jax.enable_x64(True):
    ...     game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    ...     times = np.array([0.0, 1.0])
    ...     start = core.empty_memories(game)
    ...     solution = core.trajectory(game, start, times, observe=lambda x: core.word_share(game, x))
    ...     print(solution.observed.round(3))
    [[0.6   0.4  ]
     [0.582 0.418]]
    """
    last = times[-1] if max_time is None else max_time
    numbers = [jnp.asarray(number, float) for number in (last, rtol, atol, rest, first_step)]
    return _solved(game, x, times, observe, numbers, bool(stiff), int(max_steps), adjoint)


@one_program
def _solved(
    game: Flow,
    x: Float[Array, ...],
    times: Float[Array, " times"],
    observe: Callable[[Float[Array, ...]], Any] | None,
    numbers: list[Float[Array, ""]],
    stiff: bool,
    max_steps: int,
    adjoint: diffrax.AbstractAdjoint | None,
) -> Trajectory:
    last, rtol, atol, rest, first_step = numbers
    masses = game.masses(x)
    scale = jnp.where(masses > 0, masses, 1)

    def seen(y: Float[Array, ...]) -> Any:
        return y * scale if observe is None else observe(y * scale)

    def rate(t: Any, y: Float[Array, ...], game: Flow) -> Float[Array, ...]:
        return drift(game, y * scale) / scale

    def at_rest(t: Any, y: Float[Array, ...], game: Flow, **_: Any) -> Any:
        return jnp.abs(rate(t, y, game)).max() < rest

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(rate),
        diffrax.Kvaerno5() if stiff else diffrax.Tsit5(),
        0.0,
        last,
        first_step,
        x / scale,
        args=game,
        saveat=diffrax.SaveAt(
            subs=[
                diffrax.SubSaveAt(ts=times, fn=lambda t, y, game: seen(y)),
                diffrax.SubSaveAt(t1=True),
            ]
        ),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        event=diffrax.Event(at_rest),
        max_steps=max_steps,
        adjoint=diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        throw=False,
    )
    values, moments = cast(Any, solution.ys), cast(Any, solution.ts)
    observed, end, end_time = values[0], values[1][0] * scale, moments[1][0]
    final = seen(values[1][0])
    reached = (times <= end_time) & (end_time > 0)  # nothing is observed of a start at rest

    def repeated(values: Array, last: Array) -> Array:
        where = reached.reshape(-1, *(1 for _ in last.shape))
        return jnp.where(where, values, last)

    return Trajectory(
        jax.tree.map(repeated, observed, final),
        end,
        end_time,
        jnp.abs(drift(game, end) / scale).max(),
        solution.stats["num_steps"],
        diffrax.is_okay(solution.result) | diffrax.is_event(solution.result),
    )


def word_trajectories(
    arrays: tuple[Shaped[Array, "lanes ..."], ...],
    x: Float[Array, "lanes species states"] | Float[Array, "lanes states ends"],
    times: Float[Array, " times"],
    max_time: Float[Array, ""],
    rtol: Float[Array, ""],
    atol: Float[Array, ""],
    rest: Float[Array, ""],
    *,
    edges: bool = False,
) -> tuple[Array, ...]:
    """Word shares at the times, end, time and speed there, and success, of a batch of naming games.

    `arrays` are as in `game_of`, for each lane; each species of x has the sum 1. With `edges` the last one holds
    degrees, and x is as in an `EdgeGame`.
    """

    def one(x: Array, q: Array, share: Array, *others: Array) -> tuple[Array, ...]:
        scale = jnp.maximum(share, LEAST_SHARE)
        game = EdgeGame(q[0], *others) if edges else game_of((q, scale, *others))
        scale = jnp.ones(()) if edges else scale[:, None]
        found = trajectory(
            game,
            x * scale,
            times,
            max_time=max_time,
            observe=lambda x: word_share(game, x) if isinstance(game, WordGame) else game.word_share(x),
            rtol=rtol,
            atol=atol,
            rest=rest,
            adjoint=FORWARD,
        )
        return found.observed, found.end / scale, found.end_time, found.speed, found.successful

    return _each(one, x, *arrays)


def word_drifts(
    arrays: tuple[Float[Array, ...], ...], x: Float[Array, "batch species states"]
) -> Float[Array, "batch species states"]:
    """dx/dt, in units of its share, for compositions in which each species has the sum 1."""
    q, share, *others = arrays
    share = jnp.maximum(share, LEAST_SHARE)
    game = game_of((q, share, *others))
    return jax.vmap(lambda x: drift(game, x * share[:, None]) / share[:, None])(x)


def reaction_trajectories(
    arrays: tuple[Any, ...],
    x: Float[Array, "lanes states"],
    times: Float[Array, " times"],
    rtol: Float[Array, ""],
    atol: Float[Array, ""],
    first_step: Float[Array, ""],
    *,
    stiff: bool,
) -> tuple[Array, ...]:
    """Compositions and max|dx/dt| at the times, and success, of one reaction game from a batch of starts.

    `arrays` are as in `game_of`.
    """
    game = game_of(arrays)

    def observe(x: Array) -> tuple[Array, Array]:
        return x, jnp.abs(drift(game, x)).max()

    def one(x: Array) -> tuple[Array, ...]:
        steps = {"first_step": first_step, "stiff": stiff, "adjoint": FORWARD}
        found = trajectory(game, x, times, observe=observe, rtol=rtol, atol=atol, **steps)
        return *found.observed, found.successful

    return _each(one, x)


def _each(one: Callable[..., tuple[Array, ...]], *lanes: Array) -> tuple[Array, ...]:
    """`one` for each lane; a single one compiles faster without `jax.vmap`."""
    if len(lanes[0]) > 1:
        return jax.vmap(one)(*lanes)
    return jax.tree.map(lambda values: values[None], one(*(values[0] for values in lanes)))
