"""Runs of real populations as they happened, from one of the archives published with [001]."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from meanfield.datasets._archive import members, unpickle
from meanfield.toolbox._errors import InputError

LARGEST_MEMBER = 2**23  # bytes; the published ones have at most 1.5 million
PICKLE = re.compile(r".+\.pkl")
RUN_FILE = re.compile(
    r".*?(?:baseline|from_\d+|_(?P<committed>\d+)cmtd)_(?P<options>.+?)_(?P<payoffs>-?\d+_-?\d+)_(?P<memory>\d+)mem_"
    r"(?P<topology>[a-z]+)(?:_.*?(?P<temperature>\d+\.\d+)tmp)?.*"
)
SETTINGS = {"payoffs": "-50_100", "topology": "complete", "temperature": "0.5"}  # of the papers


class RealRun(NamedTuple):
    """A run: who met, what they said, and how it began. Agents have numbers, as in the file."""

    file: str
    model: str
    options: tuple[str, ...]
    memory_length: int
    agents: tuple[int, ...]
    initial: str  # the word in all memories at the start, '' where they were empty
    committed: tuple[int, ...]
    committed_word: str
    players: np.ndarray  # (interaction, 2)
    said: np.ndarray  # (interaction, 2), words
    converged: bool  # whether the file says that it was stopped because it had converged
    committed_from: int = 0  # interactions before which committed agents may say anything
    rounds: np.ndarray | None = None  # (interaction,), growing from 0; None if each interaction is a round of its own

    @property
    def experiment(self) -> str:
        """from_empty, from_consensus or committed."""
        if self.committed:
            return "committed"
        return "from_consensus" if self.initial else "from_empty"


class Archive(NamedTuple):
    """All that archives hold: runs, and rows of the tables of `RealPopulations`."""

    runs: list[RealRun]
    answers: list[tuple]  # model, file, state, choice, count
    comprehension: list[tuple]  # model, file, question, accuracy, number
    skipped: list[tuple[str, str, str]]  # file, run ('' for the whole file), reason


def read_archive(path: Path, found: Archive) -> None:
    """Adds the runs and tests in an archive, whatever their files are called; the model has the archive's name.

    InputError if it is not a zip archive, or holds no run.
    """
    model, before = path.stem.removesuffix("_data"), len(found.runs)
    for name, content in members(path, PICKLE, LARGEST_MEMBER):
        file = PurePosixPath(name).name
        try:
            _add_member(found, file, model, unpickle(content, name))
        except (ValueError, OverflowError, RecursionError) as error:
            found.skipped.append((file, "", str(error)))
    if len(found.runs) == before:
        raise InputError(f"path = {path}: holds no run of a population")


def _add_member(found: Archive, file: str, model: str, data: object) -> None:
    tracker = data.get("tracker") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(tracker, dict):
        answers, agent = tracker.get("answers"), data.get("simulation")
        history = [agent.get(side) for side in ("my_history", "partner_history")] if isinstance(agent, dict) else []
        if not (_words(answers) and len(history) == 2 and all(map(_words, history)) and len({*map(len, history)}) == 1):
            found.skipped.append((file, "", "expected one agent's history and a list of its answers"))
            return
        state = "|".join(map(",".join, zip(*history, strict=True)))
        found.answers.extend((model, file, state, *counted) for counted in sorted(Counter(answers).items()))
    elif questions := _questions(data):
        found.comprehension.extend((model, file, *question) for question in questions)
    else:
        _add_runs(found, file, model, data)


def _questions(data: object) -> list[tuple[str, float, int]]:
    """Accuracy and number of answers by question, of answers by agent or of their means; [] if it is neither."""
    if not isinstance(data, dict) or not all(isinstance(part, dict) for part in data.values()):
        return []
    if all(isinstance(part.get("mean"), (int, float)) for part in data.values()):
        return [(str(question), float(part["mean"]), 0) for question, part in data.items()]
    given = defaultdict(list)
    for agent in data.values():
        for question, answers in agent.items():
            if not isinstance(answers, list) or not all(answer in (0, 1) for answer in answers):
                return []
            given[question] += answers
    return [(question, sum(answers) / len(answers), len(answers)) for question, answers in given.items() if answers]


def _add_runs(found: Archive, file: str, model: str, data: object) -> None:
    named = RUN_FILE.fullmatch(file)
    if not isinstance(data, dict) or named is None:
        found.skipped.append((file, "", "expected runs, and a name with options and memory length"))
        return
    for what, usual in SETTINGS.items():
        if named[what] not in (usual, None):
            found.skipped.append((file, "", f"{what} = {named[what]}: expected {usual}, as in the papers"))
            return
    options, committed = tuple(named["options"].split("_")), int(named["committed"] or 0)
    for number, content in data.items():
        if number == "rules":  # the text of the prompt
            continue
        try:
            found.runs.append(_run(file, model, options, int(named["memory"]), committed, content))
        except Exception as error:  # it can hold anything
            found.skipped.append((file, str(number), f"{error}" or type(error).__name__))


def _run(
    file: str, model: str, options: tuple[str, ...], memory_length: int, n_committed: int, content: Any
) -> RealRun:
    """A run, checked against the histories that the file holds beside it; ValueError where they contradict."""
    agents, tracker = {int(agent): held for agent, held in content["simulation"].items()}, content["tracker"]
    players, said = np.array(tracker["players"], int), np.array(tracker["answers"], str)
    if players.ndim != 2 or players.shape != said.shape or players.shape[1] != 2 or not len(players):
        raise ValueError("no interactions")
    if unknown := sorted({*said.ravel()} - {*options}):
        raise ValueError(f"the word {str(unknown[0])!r} is none of {', '.join(options)}")
    if strangers := {*players.ravel().tolist()} - {*agents}:
        raise ValueError(f"agent {min(strangers)} is none of the population")
    committed = tuple(agent for agent in agents if agents[agent].get("committed_tag"))
    if len(committed) != n_committed:
        raise ValueError(
            f"{len(committed)} agents are tagged as committed: expected {n_committed}, as in the file's name"
        )
    before = {agent: _before(agent, agents[agent], memory_length, players, said) for agent in agents}
    free = {before[agent] for agent in agents if agent not in committed}
    if len(free) != 1:
        raise ValueError("agents begin with different memories")
    (initial,) = free
    if initial not in ("", *options):
        raise ValueError(f"agents begin with the word {initial!r}: expected one of {', '.join(options)}")
    words = {*said[np.isin(players, committed)].tolist()}
    if len(words) > 1:
        raise ValueError("committed agents say more than one word")
    end = content.get("convergence") or {}
    return RealRun(
        file,
        model,
        options,
        memory_length,
        tuple(agents),
        initial,
        committed,
        next(iter(words), ""),
        players,
        said,
        end.get("converged_index") == len(players),
    )


def _before(agent: int, held: dict, memory_length: int, players: np.ndarray, said: np.ndarray) -> str:
    """The word that fills an agent's memory at the start, '' if it is empty."""
    met, place = np.nonzero(players == agent)
    own, other = said[met, place], said[met, 1 - place]
    mine, partners = held["my_history"], held["partner_history"]
    first = len(mine) - len(met)
    if first < 0 or mine[first:] != own.tolist() or partners[first:] != other.tolist():
        raise ValueError(f"the history of agent {agent} differs from the list of interactions")
    words = {*mine[:first], *partners[:first]}
    if len(words) > 1 or first not in (0, memory_length):
        raise ValueError(
            f"agent {agent} begins with {first} interactions on {len(words)} words: expected none, or H on one"
        )
    return next(iter(words), "")


def _words(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
