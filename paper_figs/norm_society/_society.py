"""A society of agents who keep their norms, and leave every decision to operations of any kind."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, UnparsedError, labelled, one_of, stamp, whole_number
from paper_figs.norm_society._member import OPPOSITE, Member, Norms, PersonalNorm
from theory import norms
from theory.norms import AGENTS, Behaviour, NormAgent, NormRates
from theory.toolbox import SHARES, STANDARDS, agents_of, behaviours_of, rates_of

N_CREATED = 5  # [003] Appendix A
WHOLE = NormRates(other_utility_entrepreneur=0.0, other_utility_ordinary=0.0)
SEEN = {"conflicts": "conflict", "thoughts": "thought", "chats": "chat"}
OPERATIONS = (
    *("create", "detect_conflict", "decide_to_talk", "talk", "think", "identify", "is_consistent", "is_unique"),
    *("is_type_right", "is_conflict_free", "plan", "act", "classify", "abstract"),
)

ANSWERS: dict[str, tuple[type, ...]] = {  # those of all other operations are True or False
    **{"create": (list,), "talk": (str,), "think": (str, NoneType), "identify": (dict, NoneType)},
    **{"plan": (dict,), "act": (dict,), "classify": (list,), "abstract": (list,)},
}


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
    progress: bool = False,
) -> xr.Dataset:
    """Simulate a norm society in one café, agent by agent and norm by norm. Source: [003] Sections 2 and 3.1.

    Entrepreneurs create norms and keep to them; the others have none. Then events follow one another: two distinct
    agents, observer and actor, have an encounter about one of the behaviours, all uniformly at random; or one agent
    makes a plan; or one looks whether its norms need a synthesis. Their probabilities are proportional to B ·
    encounters_per_day, plans_per_day and syntheses_per_day, for B behaviours. With `TableOperations` and one behaviour
    this is the process of `theory.norms.reaction_model`, interaction by interaction.

    A norm that passed the check replaces those for the opposite standard, an agent goes on to plan by every norm that
    it has planned by, and it counts as told of a norm only while it holds none for the same behaviour. Norms in a
    model's own words are filed under the behaviours that they mention: norms of an entrepreneur under the standard that
    it likes; norms found in a thought under the standard that was seen, in a conversation under the speaker's, or the
    opposite of what the speaker saw if it holds none; and those about another behaviour under the thinker's or
    speaker's standard for it. A norm about nothing known is in no share and contradicts nothing.

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

    `norms` are the agent's qualified norms, `informed` those that it heard of and has not accepted, the latest last;
    `source` is 'chat' or 'thought'. With an observation and a text come the name of the `behaviour`, the standard that
    it `shows`, and whether it is `normative` or a habit. `operations` may have the attributes `rates`; `identity`, a
    text that determines the answers; `created_for`, names of agents for whom it has norms; and `exchanges`, a list of
    what was asked, which is emptied at the start.

    Parameters
    ----------
    operations
        Who decides: `TableOperations`, `NormOperations` or a function of yours.
    agents, behaviours
        Two agents or more with preferences for all behaviours; default: the ten of [003].
    encounters, seed
        Number of encounters, and the seed of all random numbers.
    rates
        Default: the rates of `operations`, else `NormRates` without utilities of norms that are not in the society.
    n_created
        Most norms of an entrepreneur at the start, 5 in [003].
    on_unparsed
        'raise' `policy_extraction.UnparsedError` where operations do, or 'no': the answer is no, or nothing happens.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `event`, 0 being the start, with `conflicts`, `thoughts` and `chats` (event, behaviour) so far, the
    shares `accepted`, `complying`, `reached` and `informed` (event, behaviour, standard) of agents after the event, and
    `answers` (event), JSON lists of operation, name of the agent and answer, if there was a usable one; `unparsed`
    (operation), how often there was none. Coordinates `what` (event): 'start', 'encounter', 'plan' or 'synthesis', and
    `time` (event), the average duration of so many events in days. The attr `databases` is JSON: the norms and plan of
    each agent in the end.

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
    leading = {agent.name for agent in agents if agent.type == "entrepreneur"}
    if unused := [name for name in getattr(operations, "created_for", ()) if name not in leading]:
        warnings.warn(
            f"operations have norms for {', '.join(unused)}: expected them for entrepreneurs of the society, "
            f"{', '.join(sorted(leading)) or 'which has none'}",
            stacklevel=2,
        )
    encounters, n_created = whole_number("encounters", encounters, 1), whole_number("n_created", n_created, 1)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    society, met = Society(operations, agents, chosen, rates, n_created, on_unparsed), 0
    events, shares = list[Event](), list[np.ndarray]()
    getattr(operations, "exchanges", []).clear()  # earlier exchanges are not of this society
    with tqdm(total=encounters, disable=not progress, unit="encounter", leave=False) as bar:
        while met < encounters:
            # Random numbers belong to events: disjoint parts of one Philox sequence
            rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, len(events), 0, 0]))
            events.append(society.play(len(events), rng))
            shares.append(society.counts.mean(0))
            met += events[-1].what == "encounter"
            bar.update(events[-1].what == "encounter")
    names = [one.name for one in chosen]
    seen = [[[e.behaviour == b and what in e.seen for b in names] for what in SEEN.values()] for e in events]
    over, so_far, followed = ("event", "behaviour"), np.cumsum(seen, axis=0), np.array(shares)
    answers = np.array([json.dumps(event.answers) for event in events], dtype=object)
    columns = {name: (over, so_far[:, k], f"{name} so far") for k, name in enumerate(SEEN)}
    columns |= {name: ((*over, "standard"), followed[:, k], text) for k, (name, (_, text)) in enumerate(SHARES.items())}
    failed = [society.unparsed[name] for name in OPERATIONS]
    columns |= {"unparsed": ("operation", failed, "operations without a usable answer")}
    columns |= {"answers": ("event", answers, "operation, agent and answer")}
    time = np.arange(len(events)) / (len(agents) * sum(society.frequencies))
    coords = {"behaviour": names, "standard": list(STANDARDS), "operation": list(OPERATIONS)}
    coords |= {"event": np.arange(len(events)), "what": ("event", [event.what for event in events])}
    result = labelled(columns, coords | {"time": ("event", time, {"long_name": "time, on average", "units": "day"})})
    databases = json.dumps({one.agent.name: one.as_dict() for one in society.members}, ensure_ascii=False)
    options = {"encounters": encounters, "seed": seed, "n_created": n_created, "on_unparsed": on_unparsed}
    options["operations"] = getattr(operations, "identity", "")
    return stamp(result, "norm_society", None, **options, **vars(rates)).assign_attrs(databases=databases)


@dataclass
class Event:
    """An event and its results."""

    what: str  # 'start', 'encounter', 'plan' or 'synthesis'
    behaviour: str = ""  # subject of the encounter
    seen: list[str] = field(default_factory=list)  # some of 'conflict', 'chat' and 'thought'
    answers: list[list[Any]] = field(default_factory=list)  # operation, name of the agent, and the answer if any


class Society:
    """Agents start, meet, plan and synthesise: `play` changes `members`, and `counts` what they count as.

    An encounter is as in `theory.norms.reaction_model`, [003] Section 2:

        the actor acts (act); the observer may find this in conflict with its norms (detect_conflict) and talk about it
        (decide_to_talk, talk); then the actor may learn the norm that they talk about (identify and the check);
        else the observer may have a thought (think) and learn the norm that is in it.
    """

    def __init__(
        self,
        operations: Callable[..., Any],
        agents: Iterable[NormAgent],
        behaviours: Sequence[Behaviour],
        rates: NormRates,
        n_created: int = N_CREATED,
        on_unparsed: str = "raise",
    ) -> None:
        self.operations, self.behaviours, self.rates = operations, behaviours, rates
        self.n_created, self.on_unparsed = n_created, on_unparsed
        self.members = [Member(agent) for agent in agents]
        self.counts = np.zeros((len(self.members), len(SHARES), len(behaviours), len(STANDARDS)))
        self.unparsed: Counter[str] = Counter()  # calls without a usable answer
        self.frequencies = (  # of encounters, plans and looks at synthesis, of an agent a day
            len(behaviours) * rates.encounters_per_day,
            rates.plans_per_day,
            rates.syntheses_per_day,
        )

    def play(self, number: int, rng: np.random.Generator) -> Event:
        """Event number `number`, the start being 0."""
        self.rng, self.event = rng, Event("start")
        members = self.members
        if number == 0:
            for who, one in enumerate(members):
                if one.agent.type == "entrepreneur":
                    self._become(who, self.start(one))
            return self.event
        meeting, planning, _ = self.frequencies
        which = rng.random() * sum(self.frequencies)
        first = int(rng.random() * len(members))
        if which < meeting:
            second = int(rng.random() * (len(members) - 1))
            behaviour = self.behaviours[int(rng.random() * len(self.behaviours))]
            self.encounter(first, second + (second >= first), behaviour)
        elif which < meeting + planning:
            self.event.what = "plan"
            self._become(first, self.plan(members[first]))
        else:
            self.event.what = "synthesis"
            self._become(first, self.synthesis(members[first]))
        return self.event

    def _become(self, who: int, after: Member) -> None:
        self.members[who] = after
        last = {behaviour: standard for norm in after.informed for behaviour, standard in norm.about}
        standards = [(one.name, standard) for one in self.behaviours for standard in STANDARDS]
        levels = [after.held.get(one, "informed" if last.get(one[0]) == one[1] else "") for one in standards]
        counted = [[level in of for level in levels] for of, _ in SHARES.values()]
        self.counts[who] = np.reshape(counted, self.counts.shape[1:])

    def _ask(self, operation: str, no: Any, agent: NormAgent, **given: Any) -> Any:
        """The answer, or `no` if there is no usable one."""
        self.event.answers.append([operation, agent.name])
        try:
            answer = self.operations(operation, agent, given, self.rng)
        except UnparsedError:
            if self.on_unparsed == "raise":
                raise
            self.unparsed[operation] += 1
            return no
        if not isinstance(answer, types := ANSWERS.get(operation, (bool,))):
            expected = " or ".join(one.__name__ for one in types)
            raise InputError(f"{operation} of {agent.name} answered {answer!r}: expected {expected}")
        self.event.answers[-1].append(answer)
        return answer

    def start(self, member: Member) -> Member:
        """An entrepreneur creates its norms and keeps to them."""
        created = self._ask("create", (), member.agent, n=self.n_created)
        if len(created) > self.n_created:
            found = f"create of {member.agent.name} answered {len(created)} norms"
            raise InputError(f"{found}: expected {self.n_created} at most")
        for one in created:
            norm = self.filed(one, member.agent.prefers.__getitem__)
            member = member if member.holds(norm) else member.accepts(norm)
        return member.plans("", {norm.content for norm in member.qualified})

    def encounter(self, observer: int, actor: int, behaviour: Behaviour) -> None:
        """The observer sees the actor, and one of them may learn from it."""
        event = self.event
        event.what, event.behaviour = "encounter", behaviour.name
        one, other = self.members[observer], self.members[actor]
        habit = {"text": "", "shows": other.agent.prefers[behaviour.name], "normative": False}
        plan = {"plan": other.plan, "follows": other.follows}
        act = self._ask("act", habit, other.agent, behaviour=behaviour, norms=other.qualified, **plan)
        seen = {"observation": f"{other.agent.name} {behaviour.shows[act['shows']]}.", "behaviour": behaviour.name}
        seen |= {"shows": act["shows"], "normative": act["normative"]}
        said, about = None, {**seen, "norms": one.qualified}
        if one.qualified and self._ask("detect_conflict", False, one.agent, **about):
            event.seen.append("conflict")
            if self._ask("decide_to_talk", False, one.agent, **about):
                said = self._ask("talk", None, one.agent, **about, partner=other.agent)
        if said is not None:
            event.seen.append("chat")
            self._become(actor, self._learns(other, said, "chat", seen, one))
        elif (thought := self._ask("think", None, one.agent, **about)) is not None:
            event.seen.append("thought")
            self._become(observer, self._learns(one, thought, "thought", seen, one))

    def plan(self, member: Member) -> Member:
        """An agent makes a plan by some of its norms."""
        plan = self._ask("plan", None, member.agent, norms=member.qualified)
        return member if plan is None else member.plans(plan["text"], plan["follows"])

    def synthesis(self, member: Member) -> Member:
        """Norms with utilities above the threshold are replaced, theme by theme, by a general one.

        A theme of one norm is passed over, unless rates give the agent norms that are not in its database.
        """
        agent, total = member.agent, float(sum(norm.utility for norm in member.qualified))
        if member.qualified and self.rates.synthesises(agent.type, total):
            least = 1 if getattr(self.rates, f"other_utility_{agent.type}") > 0 else 2
            for theme, contents in self._ask("classify", (), agent, norms=member.qualified):
                if len(contents) >= least:
                    member = self._generalises(member, theme, contents)
        return member

    def _generalises(self, member: Member, theme: str, contents: Sequence[str]) -> Member:
        subset = member.among(contents)
        answer = self._ask("abstract", None, member.agent, theme=theme, norms=subset)
        if answer is None or any(norm.content == answer[0] and norm.state != "informed" for norm in member.norms):
            return member
        after = member.generalises(contents, *answer)
        others = tuple(norm for norm in member.qualified if norm not in subset)
        return after if self._passes(member, after.norms[-1], f"{theme}: {' '.join(contents)}", others) else member

    def _learns(self, member: Member, text: str, source: str, seen: Mapping[str, Any], author: Member) -> Member:
        """`member` after a text of `author` in which there may be a norm."""

        def taken_as(behaviour: str) -> str:
            """The standard for a behaviour that the author upholds by its words or thoughts, '' if unknown."""
            if behaviour != seen["behaviour"]:
                return author.upheld(behaviour)
            return seen["shows"] if source == "thought" else author.upheld(behaviour) or OPPOSITE[seen["shows"]]

        found = self._ask("identify", None, member.agent, **seen, text=text, source=source, informed=member.informed)
        if found is None:
            return member
        norm = self.filed(found, taken_as)
        if member.holds(norm):
            return member
        return member.accepts(norm) if self._passes(member, norm, text, member.qualified) else member.told_of(norm)

    def _passes(self, member: Member, norm: PersonalNorm, text: str, norms: Norms) -> bool:
        """The four steps of the check; the first that fails is the last."""
        of = {"content": norm.content, "kind": norm.kind}
        given = {"is_consistent": {"text": text}, "is_unique": {"norms": norms}, "is_type_right": {}}
        given["is_conflict_free"] = {"norms": norms}
        return all(self._ask(step, False, member.agent, **of, **more) for step, more in given.items())

    def filed(self, found: Mapping[str, Any], taken_as: Callable[[str], str]) -> PersonalNorm:
        """The norm of an answer, with the standards that it is about.

        The texts of the behaviours' standards are those standards. Other texts are about the behaviours that they
        mention, and uphold the standard of the situation in which they were found, `taken_as`, '' where it is unknown:
        a text may be ironic, muddled or a double negation, but the position of its author is known.
        """
        content = found["content"]
        about = tuple((b.name, s) for b in self.behaviours for s in STANDARDS if content == b.standards[s])[:1]
        if not about:
            patterns = {one.name: one.mentions or rf"\b{re.escape(one.name)}\b" for one in self.behaviours}
            mentioned = (name for name, pattern in patterns.items() if re.search(pattern, content, re.IGNORECASE))
            about = tuple((name, standard) for name in mentioned if (standard := taken_as(name)))
        return PersonalNorm(content, found["utility"], found["kind"], about=about)
