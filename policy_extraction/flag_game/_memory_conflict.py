"""The memory-conflict probe of [002]: how an agent weighs its crop against its memory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import instance, one_or_several, stamp, whole_number
from policy_extraction._toolbox.bars import hidden
from policy_extraction._toolbox.texts import MANY
from policy_extraction.flag_game._asking import Agent, Asker, Question, check_agent, check_countries, check_crop
from policy_extraction.flag_game._play import MAX_TOKENS, MEMORY_LENGTH, TEMPERATURE
from policy_extraction.flag_game._prompts import FLAG_GAME_002, FlagGamePrompts


def probe_memory_conflict(
    agent: Agent,
    crop: bytes,
    countries: Sequence[str],
    *,
    target: str,
    lure: str,
    m: int = 1,
    reasons: Mapping[str, str] | None = None,
    entries: int = MEMORY_LENGTH,
    trials: int = 1,
    seed: int,
    temperature: float = TEMPERATURE,
    max_tokens: int = MAX_TOKENS["pairwise"],
    max_tries: int = 3,
    concurrency: int = 1,
    prompts: FlagGamePrompts = FLAG_GAME_002,
    log: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """The answers of an agent to a crop of the target when 0 to 8 of its 8 memories name a lure.

    The prompt is the pairwise one, without an interaction. Of the entries k name the lure and the others the target, in
    random order. Source: [002] Appendix D, "Memory-conflict probe prompt".

    Parameters
    ----------
    agent, crop, countries
        As in `policy_extraction.flag_game.play`, for one agent.
    target, lure
        Two of the countries.
    m
        Bandwidth of the remembered messages and of the answer.
    reasons
        For m = 2 or 3, the clue or reason in the memory of each of the two countries; the paper prints none.
    entries, trials
        Entries of the memory, and orders for each k, ≥ 1.
    seed, temperature, max_tokens, max_tries, concurrency, prompts, log, progress
        As in `policy_extraction.flag_game.play`.

    Returns
    -------
    Dataset with `answer` (social_entries, trial), and the counts `target_count`, `lure_count` and `other_count`
    (social_entries).

    Raises
    ------
    InputError
        As in `play`; or if target and lure are not two of the countries, or reasons are missing or not needed.
    UnparsedError, StorageError
        As in `play`.

    See Also
    --------
    theory.flag_game.mechanism2.fit : uptake and rewrite from the result

    Examples
    --------
    An agent that repeats the report that it read last, without and with 8 memories of the lure.

    >>> from policy_extraction.flag_game import StandIn, probe_memory_conflict
    >>> crop = theory.flag_game.png(np.zeros((1, 1, 3), np.uint8))
    >>> parrot = StandIn({crop: [0.9, 0.1]}, ("France", "Peru"), uptake=1.0, grounded=False)
    >>> found = probe_memory_conflict(parrot, crop, parrot.countries, target="France", lure="Peru", trials=20, seed=1)
    >>> found["lure_count"].values[[0, -1]]
    array([ 0, 20])
    """
    countries = tuple(one_or_several(countries))
    instance("prompts", prompts, FlagGamePrompts)
    check_agent("agent", agent)
    check_crop("crop", crop)
    check_countries(countries)
    for name, country in (("target", target), ("lure", lure)):
        if country not in countries:
            raise InputError(f"{name} = {country!r}: expected one of {', '.join(countries)}")
    if target == lure:
        raise InputError(f"lure = {lure!r}: expected another country than the target")
    entries, trials = whole_number("entries", entries, 1, MANY), whole_number("trials", trials, 1, MANY)
    whole_number("entries * trials", entries * trials, 1, MANY)
    whole_number("m", m, 1, 3)
    more = [key for key in prompts.message.keys(m) if key != "country"]
    given, pair = reasons or {}, (target, lure)
    if bool(more) != bool(given) or (more and set(given) != set(pair)):
        expected = f"one for {target} and one for {lure}" if more else "None"
        raise InputError(f"reasons = {reasons!r}: expected {expected} with m = {m}")
    # The memories of the target and of the lure
    said = [json.dumps({"country": one} | {key: given[one] for key in more}, ensure_ascii=False) for one in pair]
    rules = {"protocol": "memory conflict", "messages": said, "entries": int(entries)}
    asker = Asker(
        (agent,), (crop,), countries, prompts, seed, temperature, max_tokens, max_tries, concurrency, log, rules
    )
    answers = np.empty((entries + 1, trials), dtype=object)
    for trial in tqdm(range(trials), desc=agent.name, unit="trial", disable=hidden(progress), leave=False):
        questions = []
        for k in range(entries + 1):
            order = np.random.default_rng([seed, trial, k]).permutation(entries)
            memory = {"memory": "\n".join(said[int(place < k)] for place in order)}
            questions.append(Question("probe", trial * (entries + 1) + k, 0, prompts.message, m, memory))
        answers[:, trial] = [answer["country"] for answer in asker.ask(questions)]
    answers = answers.astype(str)
    is_target, is_lure = answers == target, answers == lure
    columns = {"target_count": is_target, "lure_count": is_lure, "other_count": ~(is_target | is_lure)}
    result = xr.Dataset(
        {name: ("social_entries", which.sum(1), {"units": "1"}) for name, which in columns.items()},
        coords={"social_entries": np.arange(entries + 1), "trial": np.arange(trials), "model": agent.name},
    )
    result["answer"] = (("social_entries", "trial"), answers, {"long_name": "country that was answered"})
    options = {"target": target, "lure": lure, "m": m, "entries": entries, "trials": trials, "seed": seed}
    return stamp(result, "memory_conflict", None, **options)
