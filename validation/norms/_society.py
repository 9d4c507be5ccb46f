"""A society of agents who keep their norms, and leave every decision to operations of any kind."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, ResumableLog, labelled, stamp, whole_number
from theory import norms
from theory.norms import AGENTS, Behaviour, NormAgent, NormRates
from theory.toolbox import SHARES, STANDARDS, agents_of, behaviours_of, rates_of
from validation.norms._events import Event, Rules
from validation.norms._member import Member
from validation.norms._questions import Questions

N_CREATED = 5  # [003] Appendix A
FORMAT = 3
UNPARSED = ("raise", "no")
WHOLE = NormRates(other_utility_entrepreneur=0.0, other_utility_ordinary=0.0)
SEEN = {"conflicts": "conflict", "thoughts": "thought", "chats": "chat"}
COMPLYING = ("complying", "superseded")
OPERATIONS = (
    *("create", "detect_conflict", "decide_to_talk", "talk", "think", "identify", "is_consistent", "is_unique"),
    *("is_type_right", "is_conflict_free", "plan", "act", "classify", "abstract"),
)


def simulate_society(
    operations: Callable[..., Any],
    agents: Sequence[NormAgent] = AGENTS,
    behaviours: Sequence[str | Behaviour] | None = None,
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
    encounters_per_day, plans_per_day and syntheses_per_day, for B behaviours. With `TableOperations` and one behaviour
    this is the process of `theory.norms.reaction_model`, interaction by interaction. Source: [003] Sections 2 and 3.1.

    As in that model a norm that passed the check replaces those for the opposite standard, an agent goes on to plan by
    every norm that it has planned by, and it counts as told of a norm only while it holds none for the same behaviour.
    Norms in a model's own words are filed under the behaviours that they mention: norms of an entrepreneur under the
    standard that it likes; norms found in a thought under the standard that was seen, in a conversation under the
    speaker's, or the opposite of what the speaker saw if it holds none; and those about another behaviour under the
    thinker's or speaker's standard for it. A norm about nothing known is in no share and contradicts nothing.

    Every decision is a question, `operations(operation, agent, given, rng)`, of one agent, a `theory.norms.NormAgent`,
    about the texts and norms in the dict `given`, with all randomness from `rng`:

    - create (n): norms that an entrepreneur starts with, n or fewer, dicts of content, kind and utility;
    - detect_conflict, decide_to_talk (observation, norms): whether it conflicts with the norms, and is talked about;
    - talk (observation, norms, partner): the conversation;
    - think (observation, norms): a thought about the observation, or None;
    - identify (text, source, informed): content, kind and utility of the norm that a text is about, or None;
    - is_consistent, is_type_right (content, kind, text): whether a norm agrees with its text, and has its kind;
    - is_unique, is_conflict_free (content, kind, norms): whether it differs from the norms, and opposes none;
    - plan (norms): a dict of the text and of the contents of norms that it follows, `follows`;
    - act (behaviour, norms, plan, follows): a dict of the text, the standard that it `shows`, and `normative`;
    - classify (norms): themes, each with the contents of its norms; no norm is part of two;
    - abstract (theme, norms): content and kind of a general norm, and weights of the norms in its utility.

    `norms` are the agent's qualified norms, `informed` those that it was told of and has not accepted, the latest last;
    `source` is 'chat' or 'thought'. With an observation and a text come the name of the `behaviour`, the standard that
    it `shows`, and whether it is `normative` or a habit. A model that never gives a usable answer raises
    `policy_extraction.UnparsedError`.

    Parameters
    ----------
    operations
        The decisions: `TableOperations`, `policy_extraction.norms.NormOperations` with a language model, or a function
        of your own. It may have the attributes `exchanges`, a list of dicts for the log, emptied after each event;
        `identity`, a text that determines the answers; `rates`, the `NormRates` that they assume; and `created_for`,
        names of agents for whom it has norms.
    agents
        N ≥ 2 agents with different names.
    behaviours
        Names of `theory.norms.BEHAVIOURS`, or objects `Behaviour`, different ones; by default all three.
    encounters
        Encounters in the run, ≥ 1; the last one ends it.
    seed
        0 to 2^63 - 1. An event's random numbers depend only on the seed and its number.
    rates
        By default the rates of `operations`, if any; else `NormRates` without utilities of other norms, for agents
        whose norms are all in their databases. They have one plan in 436 encounters about three behaviours.
    n_created
        Norms that an entrepreneur creates, ≥ 1; 5 in [003] Appendix A.
    on_unparsed
        What to do if a model gives no usable answer: 'raise' the error, or take it as 'no': no conflict, talk, thought,
        norm, theme or new plan, a step of the check that fails, an action out of habit.
    log
        A file for the answers of each event, written at its end, with the exchanges with a model. An interrupted run of
        the same society in it is repeated and continued, with the same result as without the interruption; `encounters`
        and `on_unparsed` may differ. Operations need an `identity` then.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `event`, 0 being the start, with `conflicts`, `thoughts` and `chats` (event, behaviour) so far, and the
    shares `accepted`, `complying`, `reached` and `informed` (event, behaviour, standard) of agents after the event;
    `unparsed` (operation), how often there was no usable answer. Coordinates `what` (event): 'start', 'encounter',
    'plan' or 'synthesis', and `time` (event), the average duration of so many events in days. The attr `databases` is
    JSON: the norms and plan of each agent in the end.

    Raises
    ------
    InputError
        If an argument is out of range, `log` holds another society or answers to other questions, or an answer is not
        allowed, as a utility outside 1 to 100; `log` keeps the events before.
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
    >>> society["accepted"].sel(standard="for").isel(event=[0, -1]).to_series().unstack("behaviour")
    behaviour  smoking  noise  tipping
    event
    0              0.3    0.3      0.2
    301            0.8    0.9      0.7
    """
    agents, chosen = agents_of(agents), behaviours_of(behaviours)
    if not callable(operations) or isinstance(operations, type):
        raise InputError(f"operations = {operations!r}: expected a function of operation, agent, given and rng")
    if len(agents) < 2:
        raise InputError(f"agents = {[agent.name for agent in agents]}: expected two or more")
    for one in chosen:
        norms.initial_composition(one, agents)  # which refuses agents who prefer nothing
    rates = rates_of(getattr(operations, "rates", WHOLE) if rates is None else rates)
    if on_unparsed not in UNPARSED:
        raise InputError(f"on_unparsed = {on_unparsed!r}: expected {' or '.join(map(repr, UNPARSED))}")
    identity = getattr(operations, "identity", "")
    if log is not None and not identity:
        raise InputError(f"log = {log}: expected None, since operations without an identity can't be told from others")
    _warn_of_unused(operations, agents)
    encounters, n_created = whole_number("encounters", encounters, 1), whole_number("n_created", n_created, 1)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    sha256 = texts_sha256([*agents, *chosen])
    names = {"agents": [one.name for one in agents], "behaviours": [one.name for one in chosen]}
    key = {"operations": identity, **names, "rates": vars(rates), "n_created": n_created, "society_sha256": sha256}
    kept = ResumableLog(log, {"norm_society": FORMAT, **key, "seed": seed}, "norm society")
    questions = Questions(operations, on_unparsed, kept)
    rules, streams = Rules(questions, chosen, rates, n_created), Streams(seed)
    members, record = [Member(agent) for agent in agents], Record(chosen)
    number = met = 0
    getattr(operations, "exchanges", []).clear()  # what was asked before is not of this society
    with tqdm(total=encounters, disable=not progress, unit="encounter", leave=False) as bar:
        while met < encounters:
            event = rules.play(members, number, streams.at(number))
            for who, after in event.changed.items():
                members[who] = after
            record.add(event, members)
            number += 1
            if event.what == "encounter":
                met += 1
                bar.update()
    result = record.dataset(len(agents) * sum(rules.frequencies), questions.unparsed)
    options = {"encounters": encounters, "seed": seed, "on_unparsed": on_unparsed, **vars(rates)}
    options |= {"operations": identity, "n_created": n_created}
    databases = json.dumps({one.agent.name: one.as_dict() for one in members}, ensure_ascii=False)
    return stamp(result, "norm_society", None, **options).assign_attrs(databases=databases, society_sha256=sha256)


def texts_sha256(described: Iterable[NormAgent | Behaviour]) -> str:
    """A hash of agents and behaviours with all their texts, for the provenance of results."""
    return hashlib.sha256(json.dumps([vars(one) for one in described], default=dict).encode()).hexdigest()


def _warn_of_unused(operations: Callable[..., Any], agents: Sequence[NormAgent]) -> None:
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


class Record:
    """The observables of a society, event by event."""

    def __init__(self, behaviours: Sequence[Behaviour]) -> None:
        self._names = [one.name for one in behaviours]
        self._standards = [(name, standard) for name in self._names for standard in STANDARDS]
        self._seen: list[np.ndarray] = []
        self._shares: list[np.ndarray] = []
        self._what: list[str] = []
        self._rows: dict[int, tuple[Member, np.ndarray]] = {}  # of each member as it was last counted

    def add(self, event: Event, members: Sequence[Member]) -> None:
        """Count what an event shows and whom it leaves."""
        seen = [[what in event.seen and name == event.behaviour for name in self._names] for what in SEEN.values()]
        for number, member in enumerate(members):
            if number not in self._rows or self._rows[number][0] is not member:
                self._rows[number] = member, self._row(member)
        self._seen.append(np.array(seen, dtype=np.int64))
        self._shares.append(np.mean([row for _, row in self._rows.values()], axis=0))
        self._what.append(event.what)

    def _row(self, member: Member) -> np.ndarray:
        """For each share and standard whether the member counts."""
        levels = [member.held.get(standard, "") for standard in self._standards]
        last = {behaviour: standard for norm in member.informed for behaviour, standard in norm.about}
        told = [last.get(behaviour) == standard for behaviour, standard in self._standards]
        accepted, complying = ([level in of for level in levels] for of in (("qualified", "complying"), COMPLYING))
        rows = np.array([accepted, complying, [bool(level) for level in levels], told], dtype=float)
        return rows.reshape(len(SHARES), len(self._names), len(STANDARDS))

    def dataset(self, events_per_day: float, unparsed: Mapping[str, int]) -> xr.Dataset:
        """The observables as variables, and how often each operation had no usable answer."""
        seen, shares = np.cumsum(self._seen, axis=0), np.array(self._shares)
        by_behaviour, by_standard = ("event", "behaviour"), ("event", "behaviour", "standard")
        failed = [unparsed.get(name, 0) for name in OPERATIONS]
        columns = {
            **{name: (by_behaviour, seen[:, k], f"{name} so far") for k, name in enumerate(SEEN)},
            **{name: (by_standard, shares[:, k], text) for k, (name, (_, text)) in enumerate(SHARES.items())},
            "unparsed": ("operation", failed, "operations without a usable answer"),
        }
        names = {"behaviour": self._names, "standard": list(STANDARDS), "operation": list(OPERATIONS)}
        what = ("event", np.array(self._what, dtype=str), {"long_name": "what happened"})
        time = np.arange(len(seen)) / events_per_day
        coords = {"event": np.arange(len(seen)), **names, "what": what}
        coords["time"] = ("event", time, {"long_name": "time, on average", "units": "day"})
        return labelled(columns, coords=coords)
