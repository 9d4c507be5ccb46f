"""The posterior of Mechanism 1's parameters: NUTS on the surrogate, corrected by runs of the exact simulator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy.special import gammaln, softmax
from tqdm.auto import tqdm

from meanfield.toolbox import check_memory, labelled, one_or_several, stamp, whole_number
from theory.flag_game.mechanism1._agents import simulated_moments
from theory.flag_game.mechanism1._coordinates import Coordinates, theta_at
from theory.flag_game.mechanism1._endpoints import ENDPOINTS, EndpointCounts, Source, read_counts
from theory.flag_game.mechanism1._fit import LARGEST_SEED, likeliest
from theory.flag_game.mechanism1._likelihood import LEAST_PROBABILITY, varying_part
from theory.flag_game.mechanism1._parameters import APPENDIX_E, PARAMETERS, Mechanism1
from theory.flag_game.mechanism1._surrogate import Draws, Surrogate, corrected, correction, surrogate_moments

# Mean and standard deviation in coordinates: weights near a third each, scales of 16 agents within a factor of 20,
# fields of about a nat, couplings and sharpness of order one. The paper's fit would count its data twice.
PRIOR = {
    **dict.fromkeys(("weight_T", "weight_R", "alpha"), (0.0, 1.5)),
    **dict.fromkeys(("scale_T", "scale_R"), (np.log(16), 1.5)),
    **dict.fromkeys(("mean_T", "mean_R", "mean_0"), (0.0, 1.0)),
    **dict.fromkeys(("sd_T", "sd_R", "sd_0"), (-0.5, 0.75)),
    **{"exponent_R": (0.0, 0.75), "J": (0.5, 0.75), "beta": (0.0, 0.75)},
}
TREE_DEPTH = 6  # at most 63 steps of NUTS for a draw
POINTS_A_CALL = 50  # between two looks at the progress bar
RUNS = 4000  # of the simulator for each draw and N: the logarithm of a likelihood of 240 runs is known to about 0.5
FEW = 0.1  # of the draws that count


def posterior(
    counts: Source,
    *,
    free: Sequence[str] = PARAMETERS,
    start: Mechanism1 = APPENDIX_E,
    predict: Sequence[int] = (),
    draws: int = 500,
    warmup: int = 400,
    chains: int = 2,
    seed: int = 0,
    progress: bool = False,
) -> xr.DataTree:
    """Draws from the posterior of Mechanism 1's parameters, and what they predict at other numbers of agents.

    Endpoints are multinomial; accuracies, which come from the same runs, are left out, so that nothing counts twice.
    On the scale of the coordinates (see `fit`) the prior is normal and independent: weights and alpha have means 0 and
    standard deviations 1.5, logarithms of the scales ln 16 and 1.5, means of fields 0 and 1, logarithms of their widths
    -0.5, of J 0.5, and of beta and exponent_R 0, all four with 0.75.

    NUTS (Hoffman and Gelman 2014, J. Mach. Learn. Res. 15, 1593) moves on the smooth surrogate of `fit`, scaled to
    agree with the exact simulator at the likeliest parameters. Each draw is then simulated exactly, and draws are
    resampled within their chains by the ratio of the two likelihoods. Source: [002] Section 4, Appendix E.

    Meant for a few parameters. On the published sweep of GPT-4o a fifth of the draws count with mean_R, sd_0 and J
    free, in two minutes of processor time, but 0.5 % with all 14, in ten: the surrogate is too far from the simulator
    there.

    Parameters
    ----------
    counts
        As for `fit`.
    free, start
        The parameters that are not known, and the others' values.
    predict
        More numbers of agents for which to predict endpoints.
    draws, warmup, chains
        Draws that each chain keeps and leaves out, and the number of chains.
    seed
        Seed of all random numbers, 0 to 2^61 - 1.
    progress
        Show progress bars.

    Returns
    -------
    DataTree with the groups that ArviZ knows (`arviz.plot_trace`, `plot_pair`, `plot_forest`, `loo`):

    - posterior: each free parameter (chain, draw);
    - posterior_predictive: `probability` (chain, draw, n_agents, endpoint) of each endpoint, from 4,000 runs of the
      exact simulator, at the sizes of the data and of `predict`;
    - log_likelihood: `endpoint_count` (chain, draw, size), a term for each N of the data;
    - sample_stats, of NUTS before draws are resampled: `diverging`, `acceptance_rate`, `n_steps`, `weight` (chain,
      draw);
    - observed_data: `endpoint_count` (size, endpoint).

    The attrs of posterior hold `effective_share`, 1/(n Σw²) for n draws of weights w that sum to 1. Below 0.1 the
    surrogate is too far from the simulator, which a warning tells.

    Raises
    ------
    InputError
        If an argument is not as described.

    See Also
    --------
    fit : the likeliest parameters, with standard errors
    theory.flag_game.evidence.fit : copying among anchored agents, which forecasts runs that it has not seen

    Examples
    --------
    J alone, from the ends of 40 runs among four agents, and what follows for eight.

    >>> from theory.flag_game.mechanism1 import ENDPOINTS, posterior
    >>> ends = {f"{name}_count": [count] for name, count in zip(ENDPOINTS, (17, 12, 11, 0))}
    >>> counts = pd.DataFrame({"N": [4], "seeds": [40]} | ends)
    >>> found = posterior(counts, free=["J"], predict=[8], draws=100, warmup=100)
    >>> found["posterior"]["J"].mean().item() > 1.5, found["posterior_predictive"]["n_agents"].values
    (True, array([4, 8]))
    """
    measured, coordinates = read_counts(counts), Coordinates.of(free, start)
    draws, warmup = whole_number("draws", draws, 1), whole_number("warmup", warmup, 1)
    chains, seed = whole_number("chains", chains, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    further = [whole_number(f"predict[{k}]", n, 2) for k, n in enumerate(one_or_several(predict))]
    sizes = tuple(dict.fromkeys((*measured.sizes, *further)))
    needed = 8 * chains * draws * len(sizes) * (5 + 25 + max(sizes))
    check_memory(needed, f"chains = {chains}, draws = {draws}, sizes up to {max(sizes)}", "fewer of them")
    nothing = np.full(len(measured.counts), np.nan)
    measured = measured._replace(accuracy=nothing, standard_error=nothing, accuracy_interval=None)

    surrogate, point, exact = likeliest(coordinates, measured, 1, RUNS, seed)
    by = correction(surrogate.moments(point), exact.values, measured.possible)
    points, stats, smooth = _chains(surrogate, point, (measured, by), (warmup, draws, chains, progress), seed)
    agents = [coordinates.parameters(at) for at in points.reshape(chains * draws, -1)]
    parts = []
    with tqdm(total=len(agents), desc="simulated draws", disable=not progress, leave=False) as bar:
        for first in range(0, len(agents), POINTS_A_CALL):
            some = agents[first : first + POINTS_A_CALL]
            # Other random numbers in each call, or all draws would share the luck of one set
            parts += [moments.values[:, :4] for moments in simulated_moments(some, sizes, RUNS, 2**61 + seed + first)]
            bar.update(len(some))
    probability = np.reshape(parts, (chains, draws, len(sizes), len(ENDPOINTS)))
    possible = np.where(measured.possible, np.maximum(probability[:, :, : len(exact.values)], LEAST_PROBABILITY), 1.0)
    each = (measured.counts * np.log(possible)).sum(-1)
    weight = softmax(each.sum(-1) - smooth)
    share = float(1 / (weight.size * (weight**2).sum()))
    if share < FEW:
        warnings.warn(
            f"{share:.0%} of the draws count: the surrogate on which NUTS moves is too far from the simulator there",
            stacklevel=2,
        )
    rng = np.random.default_rng([seed, 1])
    kept = np.arange(chains)[:, None], np.stack([rng.choice(draws, draws, p=one / one.sum()) for one in weight])

    drawn, ends, size = ("chain", "draw"), {"endpoint": list(ENDPOINTS)}, {"size": measured.n_agents}
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    theta = np.reshape([one.theta for one in agents], (chains, draws, -1))[kept]
    each = each[kept] + gammaln(measured.seeds + 1) - gammaln(measured.counts + 1).sum(-1)
    values = {name: (drawn, theta[..., PARAMETERS.index(name)], f"{name} of Mechanism 1") for name in coordinates.free}
    options = {"warmup": warmup, "start": str(start), "interactions_per_agent": start.interactions_per_agent}
    head = stamp(labelled(values, coords), "mechanism1_posterior", None, **options, seed=seed)
    predicted = ((*drawn, "n_agents", "endpoint"), probability[kept], "probability of an endpoint")
    likelihood = ((*drawn, "size"), each, "log-likelihood of the runs at one N")
    stats |= {"weight": weight}
    observed = (("size", "endpoint"), measured.counts, "runs with an endpoint")
    return xr.DataTree.from_dict(
        {
            "posterior": head.assign_attrs(effective_share=share),
            "posterior_predictive": labelled({"probability": predicted}, coords | ends | {"n_agents": list(sizes)}),
            "log_likelihood": labelled({"endpoint_count": likelihood}, coords | size),
            "sample_stats": labelled({name: (drawn, one, f"{name} of NUTS") for name, one in stats.items()}, coords),
            "observed_data": labelled({"endpoint_count": observed}, size | ends),
        }
    )


def _chains(
    surrogate: Surrogate, point: np.ndarray, likelihood: tuple, options: tuple[int, int, int, bool], seed: int
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Coordinates (chain, draw, free), how NUTS fared, and the surrogate's log-likelihood (chain, draw)."""
    free, *given = surrogate.given
    values, chains = (*given, *likelihood), options[2]
    with jax.enable_x64(True):
        sampler = _sampler(free, *options, tuple(np.shape(leaf) for leaf in jax.tree.leaves(values)))
        start = np.tile(point, (chains, 1)) if chains > 1 else point
        prior = np.array([PRIOR[name] for name in free])
        points, found = sampler(jax.random.key(seed), start, prior, *values)
        smooth = [[_log_likelihood(free, at, *values) for at in chain] for chain in points]
        names = "diverging", "acceptance_rate", "n_steps"
        return np.asarray(points), dict(zip(names, map(np.asarray, found), strict=True)), np.array(smooth)


@lru_cache(maxsize=8)
def _sampler(
    free: tuple[str, ...], warmup: int, draws: int, chains: int, progress: bool, shapes: tuple[tuple[int, ...], ...]
) -> Callable[..., Any]:
    """NUTS over coordinates, compiled once for all data of these shapes: numpyro's sampler takes no others after."""
    import numpyro
    from numpyro.distributions import Normal
    from numpyro.infer import MCMC, NUTS

    def model(prior: jax.Array, *values: Any) -> None:
        at = numpyro.sample("coordinates", Normal(prior[:, 0], prior[:, 1]).to_event(1))
        numpyro.factor("endpoints", _log_likelihood(free, at, *values))

    kernel = NUTS(model, dense_mass=True, max_tree_depth=TREE_DEPTH)
    options = {"num_warmup": warmup, "num_samples": draws, "num_chains": chains, "progress_bar": progress}
    sampler = MCMC(kernel, **options, chain_method="vectorized", jit_model_args=True)

    def run(key: jax.Array, start: jax.Array, *values: Any) -> tuple[jax.Array, list[jax.Array]]:
        fields = "diverging", "accept_prob", "num_steps"
        sampler.run(key, *values, init_params={"coordinates": start}, extra_fields=fields)
        found = sampler.get_extra_fields(group_by_chain=True)
        return sampler.get_samples(group_by_chain=True)["coordinates"], [found[field] for field in fields]

    return run if progress else jax.jit(run)  # numpyro alone compiles its loop in every run


@partial(jax.jit, static_argnums=0)  # numpyro evaluates a model once outside its programs
def _log_likelihood(
    free: tuple[str, ...], at: jax.Array, held: jax.Array, draws: Draws, measured: EndpointCounts, by: tuple
) -> jax.Array:
    """The part that depends on the coordinates, by the surrogate corrected `by` a ratio and an offset."""
    return varying_part(corrected(surrogate_moments(theta_at(free, held, at), draws), *by), measured)
