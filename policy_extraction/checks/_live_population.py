"""Populations in which the model writes every choice, without a policy."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, MemorySpace
from meanfield.toolbox import (
    LARGEST_SEED,
    ResumableLog,
    UnparsedError,
    instance,
    labelled,
    stamp,
    whole_number,
    word_coords,
)
from policy_extraction._toolbox.bars import hidden
from policy_extraction._toolbox.texts import MANY
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.measuring._spoken import answer_length, check_prefix, copies_needed, derived_seed, speak
from policy_extraction.prompts._games import Memory, checked_game
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Template, prompt_options

MOST_CHOICES = 10_000_000  # in all rounds of all runs
FORMAT = 1  # of a log


def live_population(
    backend: Backend,
    words: Sequence[str],
    *,
    n_agents: int,
    memory_length: int = 5,
    rounds: int,
    runs: int = 1,
    seed: int,
    temperature: float = 0.5,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    max_tries: int = 500,
    log: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Runs of the naming game of [000] and [004] in which the model is asked for each choice.

    In an interaction two distinct agents, drawn uniformly, each say a word, chosen from the words in a random order.
    Both remember what they said and heard. A round is N interactions. Memories are empty at the start. All runs go on
    side by side, so that their answers are generated together. Source: [004] SI Fig. S2.

    Parameters
    ----------
    backend, words, memory_length, template, payoffs
        As in `policy_extraction.lazy_policy`.
    n_agents
        N ≥ 2.
    rounds
        Rounds to play, ≥ 1; a run does not stop when it has converged.
    runs
        Number of runs.
    seed
        0 to 2^63 - 1.
    temperature
        Temperature of the generation.
    max_tries
        Most answers generated for a choice until one is a word.
    log
        A file of all answers, written after each interaction. An interrupted game in it goes on from there, to the same
        end as without the interruption.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset with

    - `met` and `said` (run, interaction, speaker): the agents that met, and the numbers of their words;
    - `success_rate` (run, round), the share of a round's interactions in which both said the same word, rounds from 1;
    - `memory_state` (run, boundary, agent), the agents' states at the end of round `boundary`, 0 for the start;
    - `generated` and `valid` (interaction), the number of generated answers, and of those that were a word.

    Raises
    ------
    InputError
        If an argument is out of range, the template's answer prefix ends with a space, or `log` holds another game.
    UnparsedError
        If the model says none of the words in `max_tries` tries; `log` keeps the game so far.
    StorageError
        If `log` can't be written.

    See Also
    --------
    validation.simulate : agents with the measured policy

    Examples
    --------
    Agents who repeat the word that they agreed on last, and else say either, agree in the end.

    >>> from policy_extraction.backends import TableBackend
    >>> from policy_extraction.checks import live_population
    >>> def law(memory, order):
    ...     return {memory[0][0]: 1.0} if memory and memory[0][0] == memory[0][1] else {"his": 0.5, "her": 0.5}
    >>> agent = TableBackend(law, ("his", "her"), memory_length=1)
    >>> game = live_population(agent, ("his", "her"), n_agents=4, memory_length=1, rounds=20, seed=1)
    >>> game["success_rate"].isel(run=0, round=-1).item()
    1.0
    """
    words = checked_game(words, memory_length, template, payoffs)
    instance("backend", backend, Backend)
    check_temperature(temperature)
    check_prefix(template)
    limits = {"n_agents": (n_agents, 2), "rounds": (rounds, 1), "runs": (runs, 1), "max_tries": (max_tries, 1)}
    for name, (value, least) in limits.items():
        whole_number(name, value, least, MANY)
    whole_number("runs * rounds * n_agents", runs * rounds * n_agents, 2, MOST_CHOICES)
    whole_number("seed", seed, 0, LARGEST_SEED)
    space = MemorySpace(len(words), memory_length)
    if space.n_states > LARGEST_SEED:
        raise InputError(f"memory_length = {memory_length}: with {len(words)} words expected at most 2^63 states")
    full = [((words[0], words[-1]),) * memory_length, ((words[-1], words[0]),) * memory_length]
    backend.check([template.prompt(words, memory, payoffs) for memory in full], words)

    # Everything that determines the interactions. The number of rounds is not part of it, so that a finished game can
    # be made longer.
    key = {
        "interactions": FORMAT,
        "model": backend.name,
        "identity": backend.identity,
        "words": list(words),
        "memory_length": memory_length,
        "template": template.name,
        "template_sha256": hashlib.sha256(json.dumps(asdict(template)).encode()).hexdigest(),
        "payoffs": [payoffs.success, payoffs.failure],
        "temperature": float(temperature),
        "seed": int(seed),
        "n_agents": n_agents,
        "runs": runs,
    }
    kept = ResumableLog(log, key, "population")
    played: list[Played] = []
    memories: list[list[Memory]] = [[()] * n_agents for _ in range(runs)]
    states = np.zeros((runs, rounds + 1, n_agents), dtype=np.int64)

    def play(t: int, met: np.ndarray, presented: np.ndarray) -> Played:
        """Interaction number t of all runs."""
        remembered = [memories[run][agent] for run in range(runs) for agent in met[run]]
        prompts = [
            template.prompt([words[i] for i in order], [(words[a], words[b]) for a, b in memory], payoffs)
            for memory, order in zip(remembered, presented, strict=True)
        ]
        # From the whole game, so that a continued run asks as an uninterrupted one.
        copies = copies_needed(sum(step.generated for step in played), sum(step.valid for step in played))
        spoken = speak(
            backend,
            prompts,
            [1] * len(prompts),
            words,
            temperature=temperature,
            seed=derived_seed(seed, t, 1),
            max_tokens=answer_length(backend, words),
            max_tries=max_tries,
            copies=copies,
        )
        if not all(spoken.words):
            silent = spoken.generated[[not said for said in spoken.words]].sum()
            raise UnparsedError(
                f"max_tries = {max_tries}: in interaction {t} none of {silent} answers of {backend.name} "
                f"began with {' or '.join(words)}; take more tries"
            )
        said = np.array([choice[0] for choice in spoken.words]).reshape(runs, 2)
        return Played(met, said, int(spoken.generated.sum()), int(spoken.valid.sum()))

    interactions = rounds * n_agents
    bar_options = {"desc": backend.name, "unit": "interaction", "disable": hidden(progress), "leave": False}
    with tqdm(total=interactions * runs, **bar_options) as bar:
        for t in range(interactions):
            # A function of the seed and t alone, so that a continued run equals an uninterrupted one.
            rng = np.random.default_rng([seed, t])
            first, step = rng.integers(n_agents, size=runs), rng.integers(1, n_agents, size=runs)
            met = np.stack([first, (first + step) % n_agents], axis=-1)
            presented = rng.permuted(np.tile(np.arange(len(words)), (2 * runs, 1)), axis=1)
            if t < len(kept.lines):
                with kept.answers(t) as line:
                    played.append(_recalled(line, met, len(words)))
            else:
                played.append(play(t, met, presented))
                kept.append({name: np.asarray(value).tolist() for name, value in played[t]._asdict().items()})
            bar.update(runs)
            _remember(memories, played[t], memory_length)
            if (t + 1) % n_agents == 0:
                states[:, (t + 1) // n_agents] = [[space.state(memory) for memory in run] for run in memories]
    met, said = (np.stack([getattr(step, name) for step in played], axis=1) for name in ("met", "said"))
    success = (said[..., 0] == said[..., 1]).reshape(runs, rounds, n_agents).mean(-1)
    meeting = ("run", "interaction", "speaker")
    columns = {
        "met": (meeting, met, "number of the agent"),
        "said": (meeting, said, "number of the word said"),
        "success_rate": (("run", "round"), success, "share of interactions with the same word"),
        "memory_state": (("run", "boundary", "agent"), states, "memory state at the end of the round"),
        "generated": ("interaction", np.array([step.generated for step in played]), "answers generated"),
        "valid": ("interaction", np.array([step.valid for step in played]), "answers that were a word"),
    }
    coords = {
        "run": np.arange(runs),
        "round": np.arange(1, rounds + 1),
        "boundary": np.arange(rounds + 1),
        **word_coords(words),
        "pair": "/".join(words),
        "model": backend.name,
    }
    options = {"n_agents": n_agents, "runs": runs, "rounds": rounds, "seed": seed, "temperature": float(temperature)}
    options |= {**prompt_options(template, payoffs), "max_tries": max_tries}
    result = stamp(labelled(columns, coords), "live_population", **options)
    return result.assign_attrs(memory_length=memory_length)


class Played(NamedTuple):
    """One interaction in each run."""

    met: np.ndarray  # numbers of the agents, shape (runs, 2)
    said: np.ndarray  # numbers of their words, shape (runs, 2)
    generated: int  # answers in all runs
    valid: int  # those that were a word


def _recalled(line: dict[str, Any], met: np.ndarray, n_words: int) -> Played:
    """An interaction from the log; ValueError or LookupError unless it is one of these pairs."""
    said = np.array(line["said"])
    if line["met"] != met.tolist() or said.shape != met.shape or not np.isin(said, np.arange(n_words)).all():
        raise ValueError(f"agents {line['met']} said {line['said']}, expected words of {met.tolist()}")
    return Played(met, said, int(line["generated"]), int(line["valid"]))


def _remember(memories: list[list[Memory]], step: Played, memory_length: int) -> None:
    for run, ((i, j), (a, b)) in enumerate(zip(step.met.tolist(), step.said.tolist(), strict=True)):
        memories[run][i] = (*memories[run][i], (a, b))[-memory_length:]
        memories[run][j] = (*memories[run][j], (b, a))[-memory_length:]
