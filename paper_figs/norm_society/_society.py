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
from meanfield.toolbox import LARGEST_SEED, ResumableLog, labelled, one_of, stamp, whole_number
from paper_figs.norm_society._events import Event, Questions, Rules
from paper_figs.norm_society._member import Member
from theory import norms
from theory.norms import AGENTS, Behaviour, NormAgent, NormRates
from theory.toolbox import SHARES, STANDARDS, agents_of, behaviours_of, rates_of

N_CREATED = 5  # [003] Appendix A
FORMAT = 3
WHOLE = NormRates(other_utility_entrepreneur=0.0, other_utility_ordinary=0.0)
SEEN = {"conflicts": "conflict", "thoughts": "thought", "chats": "chat"}
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
    """Simulate a norm society in one café, agent by agent and norm by norm. Source: [003] Sections 2 and 3.1.

    Entrepreneurs create norms and keep to them; the others have none. Then events follow one another: two distinct
    agents, observer and actor, have an encounter about one of the behaviours, all uniformly at random; or one agent
    makes a plan; or one looks whether its norms need a synthesis. Their probabilities are proportional to B ·
    encounters_per_day, plans_per_day and syntheses_per_day, for B behaviours. With `TableOperations` and one behaviour
    this is the process of `theory.norms.reaction_model`, interaction by interaction.

    As in that model a norm that passed the check replaces those for the opposite standard, an agent goes on to plan by
    every norm that it has planned by, and it counts as told of a norm only while it holds none for the same behaviour.
    Norms in a model's own words are filed under the behaviours that they mention: norms of an entrepreneur under the
    standard that it likes; norms found in a thought under the standard that was seen, in a conversation under the
    speaker's, or the opposite of what the speaker saw if it holds none; and those about another behaviour under the
    thinker's or speaker's standard for it. A norm about nothing known is in no share and contradicts nothing.

    Every decision is a question, `operations(operation, agent, given, rng)`, of one agent, a `theory.norms.NormAgent`,
    about the texts and norms in the dict `given`, with all randomness from `rng`. Answers are plain Python values:

    - create (n): norms that an entrepreneur starts with, n or fewer, dicts of content, kind and utility;
    - detect_conflict, decide_to_talk (observation, norms): whether it conflicts with the norms, and is talked about;
    - talk (observation, norms, partner): the conversation;
    - think (observation, norms): a thought about the observation, or None;
    - identify (text, source, informed): content, kind and utility of the norm that a text is about, or None;
    - is_consistent, is_type_right (content, kind, text): whether a norm agrees with its text, and has its kind;
    - is_unique, is_conflict_free (content, kind, norms): whether it differs from the norms, and opposes none;
    - plan (norms): a dict of the text and of the list of contents of norms that it follows, `follows`;
    - act (behaviour, norms, plan, follows): a dict of the text, the standard that it `shows`, and `normative`;
    - classify (norms): lists of a theme and the contents of its norms; no norm is part of two;
    - abstract (theme, norms): a list of content and kind of a general norm, and weights of the norms in its utility.

    `norms` are the agent's qualified norms, `informed` those that it was told of and has not accepted, the latest last;
    `source` is 'chat' or 'thought'. With an observation and a text come the name of the `behaviour`, the standard that
    it `shows`, and whether it is `normative` or a habit. `operations` may have the attributes `exchanges`, a list of
    dicts for the log, emptied after each event; `identity`, a text that determines the answers; `rates`; and
    `created_for`, names of agents for whom it has norms.

    Parameters
    ----------
    operations
        The decisions: `TableOperations`, `NormOperations` with a language model, or a function of your own.
    agents, behaviours
        Two or more agents; behaviours or their names, by default all three of `theory.norms.BEHAVIOURS`.
    encounters
        Encounters in the run; the last one ends it.
    seed
        An event's random numbers depend only on the seed and its number.
    rates
        By default those of `operations`; else `NormRates` without utilities of other norms, for agents whose norms are
        all in their databases. They have one plan in 436 encounters about three behaviours.
    n_created
        Most norms that an entrepreneur creates; 5 in [003] Appendix A.
    on_unparsed
        'raise' the `UnparsedError` of a model without a usable answer, or take it as 'no': no conflict, talk, thought,
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

    Examples
    --------
    >>> from paper_figs.norm_society import TableOperations, simulate_society
    >>> society = simulate_society(TableOperations(), encounters=300, seed=1)
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
    one_of("on_unparsed", on_unparsed, ("raise", "no"))
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
    rules, members = Rules(questions, chosen, rates, n_created), [Member(agent) for agent in agents]
    rows = np.zeros((len(agents), len(SHARES), len(chosen), len(STANDARDS)))
    events, shares, met = list[Event](), list[np.ndarray](), 0
    getattr(operations, "exchanges", []).clear()  # what was asked before is not of this society
    with tqdm(total=encounters, disable=not progress, unit="encounter", leave=False) as bar:
        while met < encounters:
            event = rules.play(members, len(events), stream(seed, len(events)))
            for who, after in event.changed.items():
                members[who], rows[who] = after, _counts(after, chosen)
            events.append(event)
            shares.append(rows.mean(0))
            met += event.what == "encounter"
            bar.update(event.what == "encounter")
    time = np.arange(len(events)) / (len(agents) * sum(rules.frequencies))
    result = _observables(events, np.array(shares), time, names["behaviours"], questions.unparsed)
    options = {"encounters": encounters, "seed": seed, "on_unparsed": on_unparsed, **vars(rates)}
    options |= {"operations": identity, "n_created": n_created}
    databases = json.dumps({one.agent.name: one.as_dict() for one in members}, ensure_ascii=False)
    return stamp(result, "norm_society", None, **options).assign_attrs(databases=databases, society_sha256=sha256)


def texts_sha256(described: Iterable[NormAgent | Behaviour]) -> str:
    """A hash of agents and behaviours with all their texts, for the provenance of results."""
    return hashlib.sha256(json.dumps([vars(one) for one in described], default=dict).encode()).hexdigest()


def stream(seed: int, number: int) -> np.random.Generator:
    """Random numbers of an event, by its number: disjoint parts of one Philox sequence."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, number, 0, 0]))


def _warn_of_unused(operations: Callable[..., Any], agents: Sequence[NormAgent]) -> None:
    """A norm may be given for a misspelt name, whose owner would then start without it."""
    entrepreneurs = {agent.name for agent in agents if agent.type == "entrepreneur"}
    if unused := [name for name in getattr(operations, "created_for", ()) if name not in entrepreneurs]:
        warnings.warn(
            f"operations have norms for {', '.join(unused)}: expected them for entrepreneurs of the society, "
            f"{', '.join(sorted(entrepreneurs)) or 'which has none'}",
            stacklevel=3,
        )


def _counts(member: Member, behaviours: Sequence[Behaviour]) -> np.ndarray:
    """For each share, behaviour and standard whether the member counts."""
    last = {behaviour: standard for norm in member.informed for behaviour, standard in norm.about}
    standards = [(one.name, standard) for one in behaviours for standard in STANDARDS]
    levels = [member.held.get(one, "informed" if last.get(one[0]) == one[1] else "") for one in standards]
    counted = [[level in of for level in levels] for of, _ in SHARES.values()]
    return np.reshape(counted, (len(SHARES), len(behaviours), len(STANDARDS)))


def _observables(
    events: Sequence[Event], shares: np.ndarray, time: np.ndarray, behaviours: list[str], unparsed: Mapping[str, int]
) -> xr.Dataset:
    """The observables as variables, and how often each operation had no usable answer."""
    seen = [[[e.behaviour == b and what in e.seen for b in behaviours] for what in SEEN.values()] for e in events]
    so_far, by_behaviour = np.cumsum(seen, axis=0), ("event", "behaviour")
    columns = {name: (by_behaviour, so_far[:, k], f"{name} so far") for k, name in enumerate(SEEN)}
    for k, (name, (_, text)) in enumerate(SHARES.items()):
        columns[name] = ((*by_behaviour, "standard"), shares[:, k], text)
    failed = [unparsed.get(name, 0) for name in OPERATIONS]
    columns["unparsed"] = ("operation", failed, "operations without a usable answer")
    names = {"behaviour": behaviours, "standard": list(STANDARDS), "operation": list(OPERATIONS)}
    what = ("event", np.array([event.what for event in events], dtype=str), {"long_name": "what happened"})
    days = ("event", time, {"long_name": "time, on average", "units": "day"})
    return labelled(columns, coords={"event": np.arange(len(events)), **names, "what": what, "time": days})
