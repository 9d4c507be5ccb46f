"""Stability of a convention: against committed minorities of any size, and without any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import xarray as xr

from meanfield import InputError, critical_mass
from meanfield.toolbox import (
    LARGEST_SEED,
    check_level,
    different,
    labelled,
    names_of,
    one_or_several,
    real_number,
    renamed,
    single_policy,
    stamp,
    whole_number,
    word_index,
    words_of,
)
from validation._engine.arguments import LARGEST_POPULATION, check_ensembles, interval_column, population_sizes
from validation.naming_game._convention import CONVENTIONS, ROUNDS_AVERAGED, Convention
from validation.naming_game._simulate import simulate
from validation.naming_game._stopped_runs import Stop, play_real_runs

ROUNDS = 30  # [001] Methods, Committed minorities
SUCCESS_RATE = CONVENTIONS["001"].success_rate


@renamed(committed_word="word")
def committed_minority(
    policy: xr.Dataset,
    *,
    n_agents: int,
    word: str,
    numbers: Sequence[int],
    runs: int,
    seed: int,
    initial: str | None = None,
    rounds: int = ROUNDS,
    success_rate: float = SUCCESS_RATE,
    share: float = 0.5,
    level: float = 0.99,
) -> xr.Dataset:
    """Fraction of runs in which a committed minority flips a consensus, by its size, and the smallest size to do so.

    At the start all N agents remember interactions on the old word only; then n of them always say another. A run flips
    if, after some interaction within the given rounds, `success_rate` of the last 3N interactions have succeeded and
    the committed word was said most often in them. Agreement on the old word ends no run; agreement on a third word
    does. Source: [001] Fig. 3 and Methods, Committed minorities, where a critical mass is a smallest fraction n/N.

    Parameters
    ----------
    policy
        One policy, of two words or more.
    n_agents
        N ≥ 2, the committed ones among them.
    word
        The word of the committed agents.
    numbers
        Numbers n of committed agents to try, 0 to N, all different.
    runs
        Number of runs for each n, ≥ 1. Run k uses the same random numbers at every n, which makes fractions at
        neighbouring n easier to compare; they are not independent.
    seed
        0 to 2^63 - 1.
    initial
        The word of the old consensus. Default: of two words, the other.
    rounds
        Rounds that the minority has, ≥ 3.
    success_rate
        Share of the last 3N interactions, in (0, 1].
    share
        Share of the runs that have to flip for `smallest`, in (0, 1]; 1 in the paper's figure.
    level
        Confidence of each single interval.

    Returns
    -------
    Dataset with

    - `flipped` (n_committed), the fraction of runs that flip, and `interval` (n_committed, bound), its Wilson interval;
    - `flip_round` (n_committed), the mean round, interactions over N, at which those runs flip, NaN where none does;
    - `smallest`, the smallest of `numbers` at which at least `share` of the runs flip, NaN if there is none;
    - `mean_field` = N · `meanfield.critical_mass`: the number beyond which an infinite population leaves the old
      consensus, in whatever time; NaN if there is none or with more than two words, see attrs["mean_field_reason"].

    Raises
    ------
    InputError
        If an argument is out of range or not a word of the policy, or the runs would take more memory than 16 GiB (or
        the environment variable MEANFIELD_MEMORY, in GiB).

    See Also
    --------
    meanfield.critical_mass : the limit of many agents
    meanfield.lifetime, validation.rare_event : flips too rare to be seen in runs
    consensus_stability : without committed agents

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> flips = validation.naming_game.committed_minority(
    ...     policy, n_agents=30, word="B", numbers=[0, 2, 4, 6], runs=100, seed=1, rounds=60
    ... )
    >>> flips["flipped"].values
    array([0.  , 0.  , 0.09, 0.98])
    >>> flips["smallest"].item(), flips["mean_field"].round(1).item()
    (6.0, 5.2)
    """
    policy = single_policy(policy)
    number_of_word = word_index(policy, word)
    others = [other for other in words_of(policy) if other != word]
    old = others[0] if initial is None and len(others) == 1 else initial
    if old not in others:
        raise InputError(f"initial = {initial!r}: expected a word other than the committed one, {', '.join(others)}")
    n = whole_number("n_agents", n_agents, 2, LARGEST_POPULATION)
    tried = sorted(whole_number("numbers", number, 0, n) for number in one_or_several(numbers))
    different("numbers", tried, "number of committed agents")
    runs = whole_number("runs", runs, 1)
    check_ensembles([n], runs)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    rounds = whole_number("rounds", rounds, ROUNDS_AVERAGED, LARGEST_SEED // n)
    needed = Convention(success_rate).successes_needed(n)
    real_number("share", share, above=0, most=1)
    check_level(level)
    stop = Stop(ROUNDS_AVERAGED * n, needed, rounds * n)
    ends = [play_real_runs(policy, n, {word: number}, old, stop, seed, np.arange(runs)) for number in tried]
    flips = [end.stopped & (end.word == number_of_word) for end in ends]
    counts = np.array([flip.sum() for flip in flips])
    times = [end.interactions[flip] / n for end, flip in zip(ends, flips, strict=True)]
    enough = np.flatnonzero(counts >= math.ceil(Fraction(str(share)) * runs))  # the decimal written, as in Convention
    mean_field, reason = np.nan, "critical masses are found for two words"
    if len(others) == 1:
        mass = critical_mass(policy, word=word, old=old)
        mean_field, reason = float(mass["critical_mass"]), str(mass.attrs["reason"])
    smallest = float(tried[enough[0]]) if enough.size else np.nan
    mean_times = np.array([t.mean() if t.size else np.nan for t in times])
    by_number = ("n_committed",)
    columns = {
        "flipped": (by_number, counts / runs, "fraction of runs that flip"),
        "interval": interval_column(by_number, counts, runs, level),
        "flip_round": (by_number, mean_times, "mean round of the flip", "rounds of N interactions"),
        "smallest": ((), smallest, f"smallest number at which at least {100 * share:g} % flip", "agents"),
        "mean_field": ((), n * mean_field, "critical number of an infinite population", "agents"),
    }
    number = ("n_committed", tried, {"long_name": "number of committed agents", "units": "agents"})
    result = labelled(columns, coords={"n_committed": number, "bound": ["low", "high"], **names_of(policy)})
    result = result.assign_attrs(old_word=old, committed_word=word, mean_field_reason=reason)
    options = {"success_rate": success_rate, "share": share, "level": level}
    return stamp(result, "committed_minority", policy, n_agents=n, runs=runs, seed=seed, rounds=rounds, **options)


def consensus_stability(
    policy: xr.Dataset,
    word: str,
    *,
    n_agents: int | Sequence[int],
    runs: int,
    rounds: int = ROUNDS,
    seed: int,
    level: float = 0.99,
) -> xr.Dataset:
    """Fraction of groups that still hold a consensus on a word some rounds after they start from it.

    A run holds the word if at least 95 % of the interactions of its last three rounds succeed, and most of those on
    that word. Source: [000] Fig. SI6, which is fig. S7 of [001].

    Parameters
    ----------
    policy
        One policy, of two words or more.
    word
        The word that all agents have said and heard in all interactions they remember.
    n_agents, runs, seed
        As for `simulate`.
    rounds
        Rounds played, ≥ 3.
    level
        Confidence of each single interval.

    Returns
    -------
    Dataset with `held` (n_agents), the fraction of runs that hold the word, and `interval` (n_agents, bound), its
    Wilson interval; `moved` (n_agents), the fraction that agree on another word; and `word_share` (n_agents, round),
    the mean over runs of the probability that a random agent says the word, which the papers plot.

    Raises
    ------
    InputError
        If an argument is out of range, or `word` is not a word of the policy.

    See Also
    --------
    committed_minority : with committed agents

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="woman/man")
    >>> for word in ("man", "woman"):
    ...     kept = validation.naming_game.consensus_stability(policy, word, n_agents=20, runs=100, rounds=15, seed=1)
    ...     print(word, kept["held"].values, kept["moved"].values)
    man [1.] [0.]
    woman [0.] [1.]
    """
    policy = single_policy(policy)
    word_index(policy, word)
    sizes = population_sizes(n_agents)
    runs = whole_number("runs", runs, 1)
    rounds = whole_number("rounds", rounds, ROUNDS_AVERAGED)
    check_level(level)
    # Looked at in the last round only: a run that is in agreement before it may yet leave it.
    at_the_end = Convention(SUCCESS_RATE, first_test=rounds)
    options = {"max_rounds": rounds, "record_rounds": rounds, "convention": at_the_end}
    games = simulate(policy, n_agents=sizes, runs=runs, seed=seed, initial=word, **options)
    held = (games["consensus_word"] == word).values.sum(1)
    agreed = games["consensus_word"].notnull().values.sum(1)
    shares = games["word_share"].sel(word=word).mean("run")
    columns = {
        "held": (("n_agents",), held / runs, "fraction of runs that hold the word"),
        "interval": interval_column(("n_agents",), held, runs, level),
        "moved": (("n_agents",), (agreed - held) / runs, "fraction of runs that agree on another word"),
        "word_share": (("n_agents", "round"), shares.values, "mean probability that a random agent says the word"),
    }
    coords = {"n_agents": games["n_agents"], "round": games["round"], "bound": ["low", "high"], **names_of(policy)}
    result = labelled(columns, coords).assign_attrs(held_word=word)
    text = " ".join(map(str, sizes))
    return stamp(result, "consensus_stability", policy, n_agents=text, runs=runs, rounds=rounds, seed=seed, level=level)
