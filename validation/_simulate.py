"""The naming game of [004] simulated agent by agent."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, name_of, single_policy, space_of, stamp, words_of
from validation._ensemble import Ensemble, Rules, play_ensemble

LARGEST_POPULATION = 2**32 - 1  # agents are drawn from 32 random bits each
LARGEST_SEED = 2**63 - 1  # what NetCDF attrs hold


def simulate(
    policy: xr.Dataset,
    *,
    n_agents: int | Sequence[int],
    runs: int,
    seed: int,
    max_rounds: int = 1000,
    trajectories: bool = False,
    record_rounds: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Ensembles of naming games among agents of one policy, from empty memories.

    An interaction: two distinct agents, uniformly at random, each say a word by their policy, and both remember what
    they said and heard. A round is N interactions. A run has converged when the mean success rate of its last three
    rounds is at least 0.98, looked at for the first time after four rounds, and then stops. Source: [004] Methods.

    Parameters
    ----------
    policy
        A single policy of W ≥ 2 words (`meanfield.single_policy`).
    n_agents
        N ≥ 2, one population size or several different ones.
    runs
        Number of runs of each size, ≥ 1.
    seed
        0 to 2^63 - 1. A run depends on (seed, its N, its number) only: not on threads, on the number of runs or on the
        other sizes, so that 1,000 runs are the first 1,000 of 10,000.
    max_rounds
        Rounds after which a run ends without consensus.
    trajectories
        Record the word share of all `max_rounds` rounds.
    record_rounds
        Record the word share of this many rounds, at most `max_rounds`. While the word share is recorded a run goes on
        beyond its consensus: were the first to converge missing, a mean over runs would be biased.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over (n_agents, run), both always there, with `consensus_word` (the word, None where a run did not converge)
    and `consensus_round` (number of rounds played by then, NaN where a run did not converge); and on request
    `word_share` (n_agents, run, round, word), the probability Q that a random agent says the word at the end of the
    round, round 0 being the start. Saved with `meanfield.save` it reads back the same.

    Raises
    ------
    InputError
        If an argument is out of range, or `policy` is not a policy or holds several.
    """
    policy = single_policy(policy)
    sizes = population_sizes(n_agents)
    runs = integer("runs", runs, 1)
    seed = integer("seed", seed, 0, LARGEST_SEED)
    max_rounds = integer("max_rounds", max_rounds, 1)
    if trajectories and record_rounds is None:
        record_rounds = max_rounds
    if record_rounds is not None:
        record_rounds = integer("record_rounds", record_rounds, 0, max_rounds)

    rules = Rules.of(policy["q"].values, space_of(policy))
    # Ends with the most that could be played, not with what was: runs that converge make the bar jump.
    most = sum(sizes) * runs * max_rounds
    bar_format = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    ensembles = []
    with tqdm(total=most, desc=name_of(policy), disable=not progress, bar_format=bar_format, leave=False) as bar:
        for n in sizes:
            ensembles.append(
                play_ensemble(
                    rules, n, runs, seed, max_rounds, record_rounds, lambda rounds, n=n: bar.update(rounds * n)
                )
            )
    result = _labelled(ensembles, policy, sizes, runs, recorded=record_rounds is not None)
    return stamp(
        result,
        "simulation",
        policy,
        n_agents=" ".join(map(str, sizes)),
        runs=runs,
        seed=seed,
        max_rounds=max_rounds,
        record_rounds=record_rounds,
    )


def _labelled(
    ensembles: list[Ensemble], policy: xr.Dataset, sizes: list[int], runs: int, *, recorded: bool
) -> xr.Dataset:
    words = np.array([*words_of(policy), None], dtype=object)  # the last one is where -1, no consensus, points
    rounds = np.stack([e.consensus_round for e in ensembles]).astype(np.float64)
    rounds[rounds == 0] = np.nan
    result = xr.Dataset(
        {
            "consensus_word": (
                ("n_agents", "run"),
                words[np.stack([e.consensus_word for e in ensembles])],
                {"long_name": "word of consensus", "missing": ""},
            ),
            "consensus_round": (
                ("n_agents", "run"),
                rounds,
                {"long_name": "rounds played until consensus", "units": "rounds of N interactions"},
            ),
        },
        coords={
            "n_agents": ("n_agents", sizes, {"long_name": "number of agents"}),
            "run": np.arange(runs),
            **{name: policy[name] for name in ("model", "pair", "word_label") if name in policy.coords},
        },
    )
    if recorded:
        shares = np.stack([e.word_share for e in ensembles])
        result["word_share"] = (
            ("n_agents", "run", "round", "word"),
            shares,
            {"long_name": "probability that a random agent says the word", "units": "1"},
        )
        result = result.assign_coords(round=np.arange(shares.shape[2]), word=policy["word"])
    return result


def population_sizes(n_agents: int | Iterable[int]) -> list[int]:
    many = list(n_agents) if isinstance(n_agents, Iterable) and not isinstance(n_agents, str) else [n_agents]
    sizes = [integer("n_agents", n, 2, LARGEST_POPULATION) for n in many]
    if not sizes or len(set(sizes)) < len(sizes):
        raise InputError(f"n_agents = {sizes}: expected one number of agents or several different ones")
    return sizes


def integer(name: str, value: object, least: int, most: int | None = None) -> int:
    expected = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least or (most is not None and number > most):
        raise InputError(f"{name} = {value!r}: expected {expected}")
    return number
