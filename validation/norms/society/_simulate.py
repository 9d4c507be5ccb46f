"""A society of agents who keep databases of norms, and leave every decision to operations of any kind."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, ResumableLog, stamp, whole_number
from theory import norms
from theory.norms import AGENTS, Behaviour, NormAgent, NormRates, SocietyOperations
from theory.toolbox import agents_of, behaviours_of, behaviours_sha256, rates_of
from validation.norms.society._events import Rules
from validation.norms.society._member import Member
from validation.norms.society._questions import Questions
from validation.norms.society._record import OPERATIONS, Record

N_CREATED = 5  # [003] Appendix A
FORMAT = 2
UNPARSED = ("raise", "no")


def simulate_society(
    operations: SocietyOperations,
    agents: Sequence[NormAgent] = AGENTS,
    behaviours: Sequence[str | Behaviour] = ("smoking", "noise", "tipping"),
    *,
    encounters: int,
    seed: int,
    rates: NormRates | None = None,
    n_created: int = N_CREATED,
    on_unparsed: str = "raise",
    log: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate a norm society in one café, agent by agent and norm by norm.

    Entrepreneurs create norms and keep to them; the others have none. Then events follow one another: two distinct
    agents, observer and actor, have an encounter about one of the behaviours, all uniformly at random; or one agent
    makes a plan; or one looks whether its norms need a synthesis. Their probabilities are proportional to B ·
    encounters_per_day, plans_per_day and syntheses_per_day, for B behaviours, so an agent has as many of each a day on
    average. With `TableOperations` and one behaviour this is the process of `theory.norms.reaction_model`, interaction
    by interaction. Source: [003] Sections 2 and 3.1.

    The society follows that model where [003] says less: a norm that passed the check replaces those for the opposite
    standard; an agent goes on to plan by every norm that it has planned by; it counts as told of a norm only while it
    holds none for the same behaviour.

    Norms in a model's own words are filed under the behaviours that they mention: those of an entrepreneur under the
    standard that it likes; those found in a thought under the standard that was seen, in a conversation under the
    speaker's, or the opposite of what the speaker saw if it holds none; and those about another behaviour under the
    thinker's or speaker's standard for it. A norm about nothing known is held, but is in no share and contradicts
    nothing.

    Parameters
    ----------
    operations
        The decisions (`theory.norms.SocietyOperations`): `TableOperations`, `policy_extraction.norms.NormOperations`
        with a language model, or your own.
    agents
        N ≥ 2 agents with different names.
    behaviours
        Names of `theory.norms.BEHAVIOURS`, or objects `Behaviour`, different ones.
    encounters
        Encounters in the run, ≥ 1; the last one ends it.
    seed
        0 to 2^63 - 1. An event's random numbers depend only on the seed and its number.
    rates
        By default those of `operations`, if it has rates, as `TableOperations` does; else `NormRates` without utilities
        of other norms, for agents whose norms are all in their databases. With the default rates there is one plan in
        436 encounters about three behaviours; a short run with plans needs others.
    n_created
        Norms that an entrepreneur creates, ≥ 1; 5 in [003] Appendix A.
    on_unparsed
        What to do if a model gives no usable answer: 'raise' the error, or take it as 'no': no conflict, talk, thought,
        norm, theme or new plan, a step of the check that fails, an action out of habit.
    log
        A file for the answers of each event, written at its end, with the exchanges with a model. If it holds an
        interrupted run of the same society, that run is repeated from the file and continued, with the same result as
        without the interruption. `encounters` and `on_unparsed` may differ. Operations need an `identity` then.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `event`, 0 being the start, with `conflicts`, `thoughts` and `chats` (event, behaviour) so far, and the
    shares `accepted`, `complying`, `reached` and `informed` (event, behaviour, standard) of agents after the event;
    `unparsed` (operation), how often there was no usable answer. Coordinates `what` (event): 'start', 'encounter',
    'plan' or 'synthesis', and `time` (event), the average duration of so many events in days. The attr `databases` is
    JSON: the norms and plan of each agent in the end.

    A `UserWarning` names agents for whom `operations` have norms but who are no entrepreneurs of the society.

    Raises
    ------
    InputError
        If an argument is out of range, `log` holds another society or answers to other questions, or an operation
        gives an answer that is not allowed, as a utility outside 1 to 100; `log` keeps the events before.
    StorageError
        If `log` can't be written.

    See Also
    --------
    simulate : with given operation probabilities
    policy_extraction.norms.NormOperations : decisions by a language model

    Examples
    --------
    >>> decide = validation.norms.TableOperations()
    >>> society = validation.norms.simulate_society(decide, encounters=300, seed=1)
    >>> accepted = society["accepted"].sel(standard="for").isel(event=[0, -1])
    >>> accepted.to_series().unstack("behaviour")
    behaviour  smoking  noise  tipping
    event
    0              0.3    0.3      0.2
    301            0.8    0.9      0.7
    """
    agents = agents_of(agents)
    chosen, rates, key = _society(operations, agents, behaviours, rates, n_created)
    if on_unparsed not in UNPARSED:
        raise InputError(f"on_unparsed = {on_unparsed!r}: expected {' or '.join(map(repr, UNPARSED))}")
    if log is not None and not key["operations"]:
        raise InputError(f"log = {log}: expected None, since operations without an identity can't be told from others")
    _warn_of_unused(operations, agents)
    encounters = whole_number("encounters", encounters, 1)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    kept = ResumableLog(log, {"norm_society": FORMAT, **key, "seed": seed}, "norm society")
    questions = Questions(operations, on_unparsed, kept)
    rules, streams = Rules(questions, chosen, rates, key["n_created"]), Streams(seed)
    record = Record([Member(agent) for agent in agents], chosen)
    number = met = 0
    getattr(operations, "exchanges", []).clear()  # what was asked before is not of this society
    with tqdm(total=encounters, disable=not progress, unit="encounter", leave=False) as bar:
        while met < encounters:
            event = rules.play(record.members, number, streams.at(number))
            record.add(event)
            number += 1
            if event.what == "encounter":
                met += 1
                bar.update()
    result = record.dataset(len(agents) * sum(rules.frequencies), questions.unparsed)
    options = {"encounters": encounters, "seed": seed, "on_unparsed": on_unparsed, **vars(rates)}
    options |= {"operations": key["operations"], "n_created": key["n_created"]}
    return stamp(result, "norm_society", None, **options).assign_attrs(society_sha256=key["society_sha256"])


def _warn_of_unused(operations: SocietyOperations, agents: Sequence[NormAgent]) -> None:
    """A norm may be given for a misspelt name, whose owner would then start without it."""
    entrepreneurs = {agent.name for agent in agents if agent.type == "entrepreneur"}
    if unused := [name for name in getattr(operations, "created_for", ()) if name not in entrepreneurs]:
        warnings.warn(
            f"operations have norms for {', '.join(unused)}: expected them for entrepreneurs of the society, "
            f"{', '.join(sorted(entrepreneurs)) or 'which has none'}",
            stacklevel=3,
        )


class Streams:
    """Random numbers of each event, by its number: disjoint parts of one Philox sequence."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.Philox(key=seed)
        self._state = self._bits.state
        self._rng = np.random.Generator(self._bits)

    def at(self, number: int) -> np.random.Generator:
        """The generator at the start of an event's part; it is the same object for all."""
        self._state["state"]["counter"][1] = number
        self._bits.state = self._state
        return self._rng


def _society(
    operations: SocietyOperations,
    agents: Sequence[NormAgent],
    behaviours: Sequence[str | Behaviour],
    rates: NormRates | None,
    n_created: int,
) -> tuple[tuple[Behaviour, ...], NormRates, dict[str, Any]]:
    """Behaviours and rates, and everything that determines a run beside its seed."""
    for name in OPERATIONS:
        if isinstance(operations, type) or not callable(getattr(operations, name, None)):
            raise InputError(f"operations = {operations!r}: expected an object with a method {name}")
    chosen = behaviours_of(behaviours)
    names = [agent.name for agent in agents]
    if len(names) < 2:
        raise InputError(f"agents = {names}: expected two or more")
    for one in chosen:
        norms.starting_fractions(one, agents)
    if rates is None:
        whole = NormRates(other_utility_entrepreneur=0.0, other_utility_ordinary=0.0)
        rates = getattr(operations, "rates", whole)
    rates = rates_of(rates)
    people = [[agent.name, agent.type, agent.description, dict(agent.prefers)] for agent in agents]
    key = {
        "operations": getattr(operations, "identity", ""),
        "agents": names,
        "behaviours": [one.name for one in chosen],
        "rates": vars(rates),
        "n_created": whole_number("n_created", n_created, 1),
        "society_sha256": hashlib.sha256(json.dumps([people, behaviours_sha256(chosen)]).encode()).hexdigest(),
    }
    return chosen, rates, key
