"""Mean-field theory against an ensemble of simulated runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.stats import t as student

import meanfield
from meanfield import TIME_PER_ROUND, InputError, Population
from meanfield.toolbox import (
    MIXED,
    canonical_order,
    check_level,
    expect,
    labelled,
    real_number,
    shown,
    stamp,
    whole_number,
    wilson_interval,
)
from validation._engine.arguments import ensembles
from validation.comparison._error_in_n import error_in_n
from validation.naming_game._simulate import simulate

LONGEST = 2000.0  # units of time to wait for a steady state, the default of `meanfield.solve`
PLAN = {"runs": 400, "seed": 0, "rounds": 30, "max_rounds": 1000}  # of runs that are simulated here
SHARE = ("n_agents", "round", "word", "run")


def compare(
    solution: xr.Dataset | Population,
    simulation: xr.Dataset | None = None,
    *,
    n_agents: int | Sequence[int] | None = None,
    runs: int | None = None,
    seed: int | None = None,
    rounds: int | None = None,
    max_rounds: int | None = None,
    time_per_round: float = TIME_PER_ROUND,
    level: float = 0.99,
    theory_error: float = 1e-6,
    progress: bool = False,
) -> xr.Dataset:
    """Test whether the simulated word share follows the rate equation and runs end at its attractor.

    The rate equation is the limit of many agents, so small N should disagree; the verdicts show where the limit begins.
    The mean over runs is off by O(1/N), and its confidence band has the width O(1/√(N·runs)): unless there are far
    fewer runs than agents the band can resolve that error. With several sizes the slope of log(error) in log(N) gives
    the order of the error (-1 for large N). The difference extrapolated to N → ∞ tells a theory that is right for many
    agents from one that is wrong.

    Parameters
    ----------
    solution
        Result of `meanfield.solve`, with `word_share` (time, word), `attractor`, a word or "mixed", and for "mixed"
        `leading_word` and `label`. Or a policy or a population, which is solved here
        with its shares, while N agents have the closest whole numbers.
    simulation
        Result of `simulate` with recorded rounds and at least two runs. None for a policy or a population, which is
        then simulated here.
    n_agents, runs, seed, max_rounds
        As for `simulate`, where it is simulated here, and only there; None for 400 runs, seed 0 and 1000 rounds.
    rounds
        Rounds that are recorded and compared, where it is simulated here; None for the first 30.
    time_per_round
        Units of the solution's time in one round, 2 for [004] Eq. 1.
    level
        Confidence of the verdict on a whole trajectory (Bonferroni over rounds and words), and of each single interval
        of a consensus probability.
    theory_error
        Numerical uncertainty of the solution, added to the standard errors in quadrature. It matters where all runs
        agree to the last digit, as at the start.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset with

    - `simulated` (n_agents, round, word), the mean over runs, its `standard_error`, `theory` (round, word), their
      difference `z` in standard errors, and `band`, the half-width of the simultaneous confidence band;
    - `within_band` (n_agents, round), for all words, and `trajectory_agrees` (n_agents), for all rounds;
    - `error` (n_agents), the root mean square difference over rounds and words without the noise of the runs, and
      `error_uncertainty`, NaN where the error is not resolved; `error_slope`, the slope of log(error) in log(N) over
      the resolved sizes, NaN for fewer than two, with `error_slope_interval` (bound);
    - `limit` (round, word), the difference extrapolated to N → ∞ by a line in 1/N through the two largest sizes,
      `limit_band`, the half-width of its simultaneous band, and `limit_verdict`: "agrees" where the band holds 0 in all
      rounds and "differs" where it does not; "sizes too small" where the variance of the runs does not fall as 1/N
      between the two, because runs still choose between two words; "one size only" otherwise;
    - `consensus_probability` (n_agents, word) and `no_consensus` (n_agents), fractions of the runs, and their Wilson
      intervals `consensus_interval` (n_agents, word, bound) and `no_consensus_interval` (n_agents, bound);
    - `predicted_word`, which most agents say at the attractor of the theory, "mixed" where none has a majority, and
      `predicted_end`, the name of that attractor, as in "mostly A (0.97)";
    - `consensus_agrees` (n_agents): most runs, with confidence, end as predicted, `as_predicted` (n_agents) being their
      fraction, with `as_predicted_interval` (n_agents, bound). The rule of a simulation looks at three rounds of one
      group, so at "mostly A (0.97)" a run may end with a consensus on A by chance, or without any: both are as
      predicted, and another word is not.

    Raises
    ------
    InputError
        If the words differ, the simulation has no trajectories or only one run, the solution ends before the last
        round, an option is out of range, or there is nothing to simulate or no number of agents.

    See Also
    --------
    validation.comparison.comparison_table : the verdicts in words
    validation.comparison.compare_ensembles : two simulations

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.6 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> comparison = validation.compare(policy, n_agents=[10, 1000], runs=200, seed=1, rounds=15, max_rounds=15)
    >>> comparison["error"].values.round(3)
    array([0.125, 0.   ])
    >>> comparison["trajectory_agrees"].values  # ten agents are no large population: some groups agree on B
    array([False,  True])

    Runs that are there already are compared with a solution:

    >>> runs = validation.simulate(policy, n_agents=[10, 1000], runs=200, seed=1, max_rounds=15, record_rounds=15)
    >>> validation.compare(meanfield.solve(policy), runs)["trajectory_agrees"].values
    array([False,  True])
    """
    time_per_round = real_number("time_per_round", time_per_round, above=0)
    check_level(level)
    real_number("theory_error", theory_error, above=0)
    policy = solution if isinstance(solution, Population) or "q" in getattr(solution, "data_vars", ()) else None
    plan = {"n_agents": n_agents, "runs": runs, "seed": seed, "rounds": rounds, "max_rounds": max_rounds}
    given = {name: value for name, value in plan.items() if value is not None}
    if simulation is None:
        if policy is None or n_agents is None:
            raise InputError("simulation = None: expected the result of simulate, or a policy and n_agents = numbers")
        plan = PLAN | given
        whole_number("runs", plan["runs"], 2)
        longest = whole_number("max_rounds", plan["max_rounds"], 1)
        first = plan.pop("rounds")
        last = min(first, longest) if rounds is None else whole_number("rounds", first, 1, longest)
        simulation = simulate(policy, record_rounds=last, progress=progress, **plan)
    elif given:
        told = ", ".join(f"{name} = {shown(value)}" for name, value in given.items())
        raise InputError(f"{told}: expected None beside a simulation, which has its own")
    simulation = ensembles("simulation", simulation)
    if "word_share" not in simulation:
        raise InputError("simulation has no word_share: expected one that recorded the word share of some rounds")
    if policy is not None:
        last = int(simulation["round"].values[-1])
        times = time_per_round * np.linspace(0, last, 4 * last + 1)
        solution = meanfield.solve(policy, times=times, max_time=max(LONGEST, times[-1]))
    solution = _validate(solution, simulation, time_per_round)
    spline = CubicSpline(solution["time"].values, solution["word_share"].transpose("time", "word").values)
    theory = spline(time_per_round * simulation["round"].values)
    share = simulation["word_share"].transpose(*SHARE).assign_attrs(long_name="word share")
    result = compare_trajectories(share, theory, level, theory_error)
    result = result.merge(_compare_consensus(simulation, solution, level))
    options = {"time_per_round": time_per_round, "level": level, "theory_error": theory_error}
    result = stamp(result, "comparison", runs=simulation.sizes["run"], **options)
    hashes = {"theory_policy_sha256": solution, "simulation_policy_sha256": simulation}
    names = {"policy": simulation.attrs["policy"]} if "policy" in simulation.attrs else {}
    known = {k: d.attrs["policy_sha256"] for k, d in hashes.items() if "policy_sha256" in d.attrs}
    return result.assign_attrs(names | known)


def compare_trajectories(share: xr.DataArray, theory: np.ndarray, level: float, theory_error: float) -> xr.Dataset:
    """The part of `compare` about trajectories, for numbers of any kind.

    `share` has the dims (n_agents, when, what, run), with any names for the middle two, and attrs["long_name"] names
    what it holds; `theory` has (when, what).
    """
    when, what = map(str, share.dims[1:3])
    trajectory = ("n_agents", when, what)
    name, runs = share.attrs["long_name"], share.sizes["run"]
    mean = share.values.mean(-1)
    standard_error = share.values.std(-1, ddof=1) / np.sqrt(runs)
    uncertainty = np.hypot(standard_error, theory_error)
    comparisons = theory.size
    band = student.ppf(1 - (1 - level) / (2 * comparisons), runs - 1) * uncertainty
    within = (np.abs(mean - theory) <= band).all(-1)
    columns = {
        "simulated": (trajectory, mean, f"simulated {name}, mean over runs"),
        "standard_error": (trajectory, standard_error, "standard error of the mean"),
        "theory": ((when, what), theory, f"mean-field {name}"),
        "z": (trajectory, (mean - theory) / uncertainty, "difference in standard errors"),
        "band": (trajectory, band, "half-width of the confidence band"),
        "within_band": (trajectory[:2], within, "theory within the band"),
        "trajectory_agrees": ("n_agents", within.all(-1), f"theory within the band in each {when}"),
    }
    trajectories = labelled(columns, {key: c for key, c in share.coords.items() if key != "run"})
    return trajectories.merge(error_in_n(share, theory, level, theory_error))


def _compare_consensus(simulation: xr.Dataset, solution: xr.Dataset, level: float) -> xr.Dataset:
    attractor, leads, end = (
        str(solution[name if name in solution else "attractor"].item())
        for name in ("attractor", "leading_word", "label")
    )
    predicted = leads or MIXED
    outcome = simulation["consensus_word"].transpose("n_agents", "run").values
    words = simulation["word_label"].values
    runs = outcome.shape[1]
    counts = (outcome[:, :, None] == words.astype(object)).sum(1)
    without = runs - counts.sum(-1)
    as_predicted = counts[:, words == predicted].sum(1) + (without if attractor == MIXED else 0)
    interval, of_predicted, of_none = (
        np.stack(wilson_interval(number, runs, level), axis=-1) for number in (counts, as_predicted, without)
    )
    return xr.Dataset(
        {
            "consensus_probability": (("n_agents", "word"), counts / runs),
            "consensus_interval": (("n_agents", "word", "bound"), interval),
            "no_consensus": ("n_agents", without / runs),
            "no_consensus_interval": (("n_agents", "bound"), of_none),
            "predicted_word": predicted,
            "predicted_end": end,
            "as_predicted": ("n_agents", as_predicted / runs),
            "as_predicted_interval": (("n_agents", "bound"), of_predicted),
            "consensus_agrees": ("n_agents", of_predicted[:, 0] > 0.5),
        },
        coords={"bound": ["low", "high"]},
    )


def _validate(solution: object, simulation: xr.Dataset, time_per_round: float) -> xr.Dataset:
    """The solution with words in the order of their numbers and times rising; InputError where both don't fit."""
    solution = canonical_order(expect(solution, "solution", "solution"), "solution").sortby("time")
    if many := set(solution["word_share"].dims) - {"time", "word"}:
        dims = [*map(str, many)]
        advice = f"select one, as in solution.sel({'=…, '.join(dims)}=…)"
        raise InputError(f"solution is one over {', '.join(dims)}: {advice}")
    theirs, ours = (tuple(map(str, d["word_label"].values)) for d in (solution, simulation))
    if theirs != ours:
        expected = f"expected the words of the simulation, {', '.join(ours)}"
        raise InputError(f"solution has the words {', '.join(theirs)}: {expected}")
    if not np.isfinite(solution["word_share"].values).all():
        raise InputError("solution.word_share has values that are not finite: expected what meanfield.solve returns")
    attractor = str(solution["attractor"].item())
    if attractor not in (*theirs, MIXED):
        raise InputError(f"solution.attractor = {attractor!r}: expected {MIXED!r} or one of {', '.join(theirs)}")
    if simulation.sizes["run"] < 2:
        raise InputError("simulation has 1 run: expected at least 2, for a standard error")
    if simulation["word_share"].isnull().any():
        raise InputError("simulation.word_share has missing values: expected every run to have every round")
    first, last = solution["time"].values[[0, -1]]
    needed = time_per_round * simulation["round"].values[-1]
    if first > 0 or last < needed * (1 - 1e-12):
        expected = f"expected 0 to {needed:g} for the rounds simulated"
        raise InputError(f"solution covers the times {first:g} to {last:g}: {expected}")
    return solution
