"""A policy from a part of its prompts, chosen for a goal, and policies that agree with it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, MemorySpace, make_policy
from meanfield.toolbox import (
    LARGEST_SEED,
    check_memory,
    expect,
    real_number,
    single_policy,
    space_of,
    stamp,
    whole_number,
    words_of,
)
from policy_extraction.backends._backend import Backend, NoLogProbabilitiesError
from policy_extraction.backends._open import open_backend
from policy_extraction.backends.local._source import SMOLLM2
from policy_extraction.measuring._active.explore import GoalExploration, Known
from policy_extraction.measuring._active.goals import GOALS, Goal
from policy_extraction.measuring._active.sampled import ANSWERS, SampledExploration
from policy_extraction.measuring._doubt import Tails
from policy_extraction.measuring._lazy import lazy_policy
from policy_extraction.measuring._spoken import sampled_answers
from policy_extraction.prompts._games import checked_game
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Template

MOST_MEMORIES = 6000  # that the posterior takes; more would take minutes for each batch
LONGEST = 7  # interactions
LEAST_ANSWERS = 40


def measure(
    model: str | os.PathLike[str] | tuple[Any, Any] | Backend = SMOLLM2,
    *,
    words: Sequence[str],
    memory_length: int = 5,
    goal: str = "kappa",
    word: str | None = None,
    tolerance: float = 0.05,
    budget: int | None = None,
    sampled: bool | None = None,
    temperature: float = 0.5,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    seed: int = 0,
    progress: bool | None = None,
    cache: bool | str | os.PathLike[str] = True,
) -> xr.Dataset:
    """The policy of a language model from a part of its prompts, chosen to tell a collective quantity.

    A Gaussian process predicts the probits Φ⁻¹(q) of all memories; `predicted_policy` describes the kernel. Its
    parameters have the largest posterior density. Each batch takes the memories that are expected to reduce the
    variance of the goal most, by the derivatives of the goal (`meanfield.sensitivity`) and the covariance of the
    posterior. The measurement ends when the interval of the goal is narrow enough or the budget is spent.

    Two fifths of each batch are drawn at random, half by the variance of a memory and half by the derivatives, and test
    the model: their answers were predicted before. Some memories are exceptions, however sure the process is where the
    policy saturates, so errors are Student's with three degrees of freedom, and the tests set their width. The goal
    itself is tested as well: if the root mean square of its latest six moves from batch to batch, in the standard
    deviations expected of them, is above 1, its interval is as many times wider. There is none before 16 predictions
    were tested. A share is final if all of 32 random policies have one too, and not κ. Exceptions too rare for these
    tests stay unseen. A goal without derivatives, as at a marginal fixed point, takes uncertain, visited memories.

    With a tolerance of 5 %, κ of twelve tables took 205 to 674 of 1,365 memories, 348 in the median, and the share of
    nineteen without κ 73 to 107. All final intervals held the true value, and 329 of 338 after each batch. The strong
    word took 73 in the median and 267 at most. κ takes more prompts than a share, as it is 0 for a policy that treats
    both words alike, however sure it is.

    Parameters
    ----------
    model
        As in `extract`.
    words
        The two words.
    memory_length
        H, in interactions, at most 7.
    goal
        - 'kappa': κ of the group-size law; the share of the first word where there is a single attractor, and no κ;
        - 'strong word': the word to which κ or this attractor belongs, with a confidence of 99 %;
        - 'eigenvalue', 'word_share': of the attractor that large populations with empty memories come to;
        - 'critical_mass': of agents committed to `word`.
    word
        Word of the committed agents, for 'critical_mass'.
    tolerance
        Half the width of the goal's 95 % interval at the end, relative to its value, for word shares to the larger
        share. Not used for 'strong word'.
    budget
        Largest number of prompts, those with kept answers included. With less than some 160, or 350 sampled answers,
        there is no interval unless all memories are asked. None for all, at most 6,000 memories; where answers are
        sampled it has to be given.
    sampled
        Sample answers at `temperature` in place of reading log-probabilities; see Notes. None to do so, with a warning,
        if the model gives no log-probabilities.
    temperature, template, payoffs, progress, cache
        As in `extract`. Kept answers are shared with `lazy_policy`.
    seed
        Seed of the first memories and of the posterior draws.

    Returns
    -------
    Policy with `q` (state, word), the posterior median where it was not measured, and `asked` (state), whether it was.
    Its attrs hold

    - `goal_quantity`, the name of the quantity, `goal_value`, `goal_low` and `goal_high`, its 95 % interval, NaN if it
      is not known, as before 16 predictions; κ is negative if the second word is strong;
    - `goal_widening`, the factor by which the goal's moves widened its interval;
    - `strong_word`, the word that is more frequent where large populations with empty memories come to, 'mixed' if
      there is a single attractor without consensus, and `strong_word_confidence`, NaN if no draws were analysed;
    - `reached`, 1 if the goal was reached, and `reason`, why the measurement ended;
    - `memories_asked` and `prompts_used`, or the number of sampled answers;
    - `held_out`, the number of the latest predictions, at most 60, `held_out_outside`, how many
      of the answers were outside their intervals, and `model_holds`, 0 if these are too many; `held_out_level`
      (prediction) are the levels of the intervals that just hold them, for the view 'calibration';
    - `posterior_parameters` and `posterior_scale`, for `sample_policies`.

    If answers were sampled, no memory is known exactly: `q` is the posterior median everywhere, and `answers` (state,
    word) counts what was said.

    Raises
    ------
    InputError
        If an argument is wrong, or the model can't be measured.
    ModelError
        If the model returns NaN or leaves prompts without an answer, or none of 100 sampled answers begins with a word.
    StorageError
        If the cache can't be read and written.

    Notes
    -----
    With `sampled` each memory takes four answers at a time, in alternating orders of the words, and the
    same memory is chosen again as long as it tells most. Counts k of n answers have the likelihood Φ(z)^k Φ(-z)^(n-k),
    and expectation propagation makes Gaussians of it. So few answers show only large faults of the model; the goal's
    moves test it further. An answer that begins with no word does not count and is asked for again, so q is the
    distribution of the words given that one is said. Word shares of eleven tables of SmolLM2 took 720 to 5,248 answers,
    2,696 in the median, but one more than 12,000; all final intervals held.

    See Also
    --------
    sample_policies : policies that agree with the answers
    extract : the whole table
    lazy_policy : for state spaces that are too large to measure whole

    Examples
    --------
    A table stands in for a model that says more often what it heard more often. Its populations come to one share.

    >>> from policy_extraction import extract, measure
    >>> from policy_extraction.backends import TableBackend
    >>> def law(memory, order):
    ...     lead = sum(1 if heard == "his" else -1 for said, heard in memory)
    ...     his = 1 / (1 + np.exp(-0.2 - 0.5 * lead))
    ...     return {"his": his, "her": 1 - his}
    >>> table = TableBackend(law, ("his", "her"), memory_length=3)
    >>> policy = measure(table, words=("his", "her"), memory_length=3, temperature=1.0)
    >>> policy.attrs["goal_quantity"], policy.attrs["reached"], policy["asked"].sum().item() < 85
    ('word_share', 1, True)
    >>> true = meanfield.fixed_points(extract(table, words=("his", "her"), memory_length=3, temperature=1.0))
    >>> share = true["word_share"].sel(word="his").item()
    >>> bool(policy.attrs["goal_low"] <= share <= policy.attrs["goal_high"])
    True
    """
    words = checked_game(words, memory_length, template, payoffs)
    chosen = _goal(goal, word, words)
    real_number("tolerance", tolerance, above=0)
    whole_number("seed", seed, 0, LARGEST_SEED)
    if memory_length > LONGEST:
        raise InputError(f"memory_length = {memory_length}: expected at most {LONGEST}; see lazy_policy")
    backend, space = open_backend(model), MemorySpace(2, memory_length)
    asked = {"template": template, "payoffs": payoffs, "temperature": temperature, "cache": cache}
    ask = None
    if not sampled:
        try:
            ask = lazy_policy(backend, words, memory_length, **asked)
        except NoLogProbabilitiesError as none:
            if sampled is not None:
                raise
            if budget is None:
                raise InputError(f"budget = None: expected a number of answers to sample, as {none}") from None
            warnings.warn(f"{backend.name} is asked for sampled answers ({none})", stacklevel=2)
    if ask is not None:
        kind, each, most = GoalExploration, len(ask.presented), min(space.n_states, MOST_MEMORIES)
        if budget is not None:
            most = min(most, whole_number("budget", budget, 5 * each) // each)
    else:
        if budget is None:
            raise InputError("budget = None: expected a number of answers to sample")
        kind, each = SampledExploration, ANSWERS
        most = whole_number("budget", budget, LEAST_ANSWERS) // each
        ask = sampled_answers(backend, words, memory_length, ANSWERS, seed=seed, **asked)
    check_memory(40 * min(most, space.n_states) ** 2, f"budget = {budget}", "a smaller budget")

    def answered(states: np.ndarray) -> np.ndarray:
        return ask([space.memory(int(state)) for state in states])

    def shown(known: Known) -> str:
        quantity = known.quantity
        return f"{quantity.name or 'no quantity'} = {quantity.value:.3g} ± {known.high - quantity.value:.2g}"

    exploration = kind(answered, tolerance, seed, space, words, chosen)
    known = exploration.to_end(most, each, backend.name, progress, shown)
    return _result(exploration, known, each, backend)


def _goal(goal: str, word: str | None, words: Sequence[str]) -> Goal:
    if goal not in GOALS:
        raise InputError(f"goal = {goal!r}: expected one of {', '.join(GOALS)}")
    if len(words) != 2:
        raise InputError(f"words: there are {len(words)}, expected 2; see predicted_policy")
    if (word is not None) != (goal == "critical_mass") or (word is not None and word not in words):
        expected = f"one of {', '.join(words)}" if goal == "critical_mass" else "None"
        raise InputError(f"word = {word!r}: expected {expected} for goal = {goal!r}")
    return Goal(goal, word)


def _result(exploration: GoalExploration, known: Known, each: int, backend: Backend) -> xr.Dataset:
    doubt = exploration.doubt
    attrs = {
        "goal": exploration.goal.name,
        "goal_quantity": known.quantity.name,
        "goal_value": known.quantity.value,
        "goal_low": known.low,
        "goal_high": known.high,
        "goal_widening": doubt.widening,
        "strong_word": known.quantity.strong,
        "strong_word_confidence": known.confidence,
        "memories_asked": int(exploration.asked.sum()),
        "posterior_parameters": exploration.parameters.tolist(),
        "posterior_scale": doubt.tails.scale,
    }
    policy = make_policy(exploration.best(), exploration.words, model=backend.name)
    policy["asked"] = ("state", exploration.asked, {"long_name": "whether the memory was asked"})
    name = "level of the smallest interval that holds the answer"
    policy["held_out_level"] = ("prediction", doubt.levels, {"long_name": name})
    if isinstance(exploration, SampledExploration):
        policy["answers"] = (("state", "word"), exploration.counts, {"long_name": "sampled answers"})
    attrs |= exploration.outcome(known, each, "every memory was asked", "the goal is known")
    options = backend.provenance | {"tolerance": exploration.tolerance, "seed": exploration.seed}
    return stamp(policy, "policy", policy, **options).assign_attrs(attrs)


def sample_policies(policy: xr.Dataset, n: int, seed: int) -> list[xr.Dataset]:
    """Draw `n` policies that agree with what `measure` asked: intervals for every analysis.

    Parameters
    ----------
    policy
        Result of `measure`.
    n
        Number of policies, ≥ 1.
    seed
        0 to 2^63 - 1. The first 10 of 100 are the 10.

    Returns
    -------
    `n` policies with `q` (state, word), drawn from the posterior. All have the measured probabilities where a memory
    was asked, but not where answers were sampled. Draws are as wide as predictions of single memories turned out to
    need, which were drawn by their weight in the goal; `goal_widening` is not in them. Memories that hardly matter for
    the goal are known less well.

    Raises
    ------
    InputError
        If `policy` is not a result of `measure`, or a number is out of range.

    See Also
    --------
    measure : the measurement

    Examples
    --------
    >>> from policy_extraction import measure, sample_policies
    >>> from policy_extraction.backends import TableBackend
    >>> def law(memory, order):
    ...     lead = sum(1 if heard == "his" else -1 for said, heard in memory)
    ...     his = 1 / (1 + np.exp(-0.2 - 0.5 * lead))
    ...     return {"his": his, "her": 1 - his}
    >>> table = TableBackend(law, ("his", "her"), memory_length=3)
    >>> policy = measure(table, words=("his", "her"), memory_length=3, temperature=1.0, budget=80)
    >>> draws = xr.concat(sample_policies(policy, 4, seed=1), "draw")
    >>> bool((draws["q"].std("draw").max("word") == 0).equals(policy["asked"]))
    True
    """
    policy = single_policy(expect(policy, "measured", "policy"))
    if "posterior_parameters" not in policy.attrs:
        raise InputError("policy: expected the result of policy_extraction.measure, but its attrs are gone")
    n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    check_memory(8 * n * policy["q"].size, f"n = {n}", "fewer draws")
    kind = SampledExploration if "answers" in policy else GoalExploration
    found = kind(lambda states: states, 1.0, 0, space_of(policy), words_of(policy), Goal(policy.attrs["goal"]))
    if isinstance(found, SampledExploration):
        found.counts = policy["answers"].values
    found.q, found.order = policy["q"].values, np.flatnonzero(policy["asked"].values)
    found.parameters = np.array(policy.attrs["posterior_parameters"], dtype=float)
    found._fit()
    tails = Tails(policy.attrs["posterior_scale"])
    drawn = (found.draw(np.random.default_rng((seed, k)), tails) for k in range(n))
    return [make_policy(q, words_of(policy), model=str(policy["model"].item())) for q in drawn]
