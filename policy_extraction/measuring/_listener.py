"""Probabilities that a language model which hears a name gives up all others for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import xarray as xr
from scipy.stats import t as student

from meanfield import InputError
from meanfield.toolbox import instance, labelled, one_or_several, real_number, shown, stamp
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.measuring._yes_no import Asked, probe
from policy_extraction.prompts._slots import fill
from policy_extraction.prompts._template import Prompt
from policy_extraction.prompts._toml import packaged_toml

TEXTS = packaged_toml("listener.toml")
FEWEST, MOST_NAMES = 4, 12  # names; the second have 1,728 questions


def listener(
    backend: Backend,
    names: Sequence[str],
    *,
    level: float = 0.95,
    temperature: float = 1.0,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool | None = None,
) -> xr.Dataset:
    """The probabilities π and φ that a model agrees to a name that it has used, and to one that it has not.

    The model is told which one or two names it has used and which name it hears, and asked whether it will use this
    one only. Every question is asked with the words for yes and no in both orders. π and φ are means over questions
    about one name in use and about two, with equal weights; their intervals tell how much they change with the names (a
    jackknife that leaves out one name at a time).
    `theory.minimal_naming_game` takes both as `accepts`. The texts are ours, in
    `policy_extraction/prompts/templates/listener.toml`.

    Parameters
    ----------
    backend
        The model.
    names
        Four to twelve different names.
    level
        Level of the intervals.
    temperature
        Temperature of the softmax over the two words.
    cache
        As for `policy_extraction.extract`.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset with

    - `accepts` (known), over True and False: π and φ, with `accepts_low` and `accepts_high`, between 0 and 1;
    - `p_yes` (question), the mean over both orders, and `captured_mass`, the probability of the two words together at
      temperature 1; coordinates `held` (names joined by ', '), `heard` and `in_use`, whether it is among them.

    Raises
    ------
    InputError
        If an argument is not as described.
    ModelError
        If the back end only bounds the probabilities of both words, or leaves prompts without an answer.
    StorageError
        If the cache can't be written. Answers so far are kept.

    See Also
    --------
    theory.minimal_naming_game.fixed_points : the conventions that follow

    Examples
    --------
    A model that agrees to names in use nine times in ten, and to others once:

    >>> import policy_extraction, theory
    >>> from policy_extraction.backends import Scores
    >>> class Model:
    ...     name, identity, provenance = "made up", "", {}
    ...     check = generate = tokens = lambda self, *asked, **options: None
    ...     def score(self, prompts, words):
    ...         texts = [prompt.user.split("Another member") for prompt in prompts]
    ...         yes = [0.9 if after.split(": ")[1].split(".")[0] in used else 0.1 for used, after in texts]
    ...         p = np.array([[one, 1 - one] for one in yes])
    ...         yield Scores(np.arange(len(p)), np.log(p), np.zeros(p.shape, bool))
    >>> found = policy_extraction.listener(Model(), ["foo", "bar", "baz", "qux"])
    >>> found["accepts"].values.round(2)
    array([0.9, 0.1])
    >>> accepts = tuple(found["accepts"].values.tolist())
    >>> round(theory.minimal_naming_game.critical_fraction(0.5, accepts=accepts), 4)
    0.0694
    """
    instance("backend", backend, Backend)
    check_temperature(temperature)
    level = real_number("level", level, above=0, below=1)
    words = one_or_several(names)
    named = all(isinstance(word, str) and word.strip() for word in words)
    if not named or not FEWEST <= len(words) <= MOST_NAMES or len(set(words)) < len(words):
        raise InputError(f"names = {shown(names)}: expected {FEWEST} to {MOST_NAMES} different names")
    cases = [(held, heard) for size in (1, 2) for held in permutations(words, size) for heard in words]
    asked = [_asked(held, heard) for held, heard in cases]
    answers = TEXTS["yes"], TEXTS["no"]
    p_yes, mass, _ = probe(backend, asked, answers, temperature, RecordCache(cache), progress)
    known = np.array([heard in held for held, heard in cases])
    without = np.array([[word not in (*held, heard) for held, heard in cases] for word in words])
    size = np.array([len(held) for held, _ in cases])
    rows = [
        _with_interval(p_yes, [(known == one) & (size == n) for n in (1, 2)], without, level) for one in (True, False)
    ]
    accepts, low, high = np.transpose(rows)
    columns = {
        "accepts": ("known", accepts, "probability of a yes"),
        "accepts_low": ("known", low, "lower end"),
        "accepts_high": ("known", high, "upper end"),
        "p_yes": ("question", p_yes, "probability of yes, of the two words"),
        "captured_mass": ("question", mass, "probability of the two words together, temperature 1"),
    }
    coords = {
        "known": [True, False],
        "held": ("question", [", ".join(held) for held, _ in cases]),
        "heard": ("question", [heard for _, heard in cases]),
        "in_use": ("question", known),
        "model": backend.name,
    }
    options = {"names": ", ".join(words), "level": level, "temperature": float(temperature), "texts": TEXTS["name"]}
    return stamp(labelled(columns, coords), "listener", **options).assign_attrs(backend.provenance)


def _asked(held: Sequence[str], heard: str) -> Asked:
    prompts = []
    for first, second in ((TEXTS["yes"], TEXTS["no"]), (TEXTS["no"], TEXTS["yes"])):
        options = fill(TEXTS["options"], {"first": first, "second": second})
        user = fill(TEXTS["user"], {"held": " and ".join(held), "heard": heard, "options": options})
        prompts.append(Prompt(TEXTS["system"], user, TEXTS["answer_prefix"]))
    return Asked(*prompts)


def _with_interval(p_yes: np.ndarray, groups: list[np.ndarray], without: np.ndarray, level: float) -> tuple[float, ...]:
    """The mean of groups of questions and its interval by a jackknife over the names."""
    mean, n = float(np.mean([p_yes[some].mean() for some in groups])), len(without)
    parts = np.array([np.mean([p_yes[some & rows].mean() for some in groups]) for rows in without])
    error = np.sqrt((n - 1) / n * ((parts - parts.mean()) ** 2).sum())
    away = student.ppf((1 + level) / 2, n - 1) * error
    return mean, max(mean - away, 0.0), min(mean + away, 1.0)
