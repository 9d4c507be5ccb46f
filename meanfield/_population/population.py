"""Populations: agents of one or several policies, and agents who always say one word."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType

import numpy as np
import xarray as xr

from meanfield._population.mixture import Blocks, Edges, Groups, Mixture
from meanfield._population.single_policy import policy_hash, single_policy, space_of, words_of
from meanfield.core._groups import HEARS, Hearing
from meanfield.core._space import MemorySpace
from meanfield.toolbox._arguments import one_of, real_number, shown, whole_number
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import real_numbers, values_in_order, word_coords

ROUNDING = 1e-9
MOST_NAMED = 8  # kinds in a name
LARGEST_GROUP = 64  # members are drawn one by one and compared with all before
MOST_HEARD = 10**7  # ways in which a group may speak, times pairs of words: 80 MB, for a speaker up to `group` times
MOST_STATES = 1365  # of memories on a graph, where pairs of them are followed


class Population:
    """Agents of one or several policies in given fractions, and committed agents who always say one word.

    With M policies, agents of kind m have the composition x_m, Σ_i x_m(i) = 1, and a random partner says word w with
    probability

        Q_w = (1 - Σ_v c_v) Σ_m φ_m Σ_i x_m(i) q_m(i, w) + c_w.

    Kinds may also be communities, whose members meet more or less often (`meets`). `solve` follows those and
    `validation.simulate` plays them; of their `reaction_model` there are fixed points, spectra, critical masses,
    lifetimes and noise.

    Parameters
    ----------
    policies
        One policy, or several over the same words with the same memory length.
    fractions
        φ, the fraction of each policy among the agents who are not committed; they sum to 1. A DataArray is aligned by
        its coordinate `component`. Optional for one policy. With `meets` the fraction of all agents in each kind,
        committed ones included.
    committed
        c, the fraction of all agents committed to each word, by word. The fractions sum to less than 1. Default: none.
        With `meets` it may be one fraction for each kind, of the agents of that kind.
    meets
        Relative rates at which an agent of one kind and an agent of another meet, symmetric, shape (M, M): encounters
        of kinds k and l are as frequent as φ_k φ_l meets[k, l]. Only ratios matter, since a round is N interactions
        whoever meets. Default: all meet alike.
    degree
        Number of neighbours of each agent, at least 2, on a graph that is random otherwise; for one policy. Agents meet
        neighbours only, who remember each other: `solve` and `critical_mass` follow the memories at both ends of an
        edge (pair approximation), S² numbers with S at most 1365. Default: everybody meets everybody.
    group
        Number of agents who meet at a time, 2 to 64, or the share of meetings by their size, as in {2: 0.5, 5: 0.5}.
        All say a word, and `hears` tells which other word each of them remembers. A round is N meetings of any size, so
        that an agent takes part as many times on average as groups have members. `solve`, `fixed_points`, `spectrum`,
        `basins`, `bifurcation`, `critical_mass` and `finite_size` follow them, and `validation.simulate` plays them.
        Default: pairs, who hear each other.
    hears
        'majority': the most frequent word of the others. 'vote': the most frequent word of the group, the same for all.
        'speaker': the word of one of the group, at random, the same for all. Of equally frequent words it is one at
        random. `validation.simulate` has members of hyperedges hear like this, too.

    Raises
    ------
    InputError
        If policies differ in words or memory length, fractions are out of range or do not sum to 1, or rates are
        negative, not symmetric, or leave a kind nobody to meet.

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> population = meanfield.Population(policy, committed={"her": 0.1})
    >>> meanfield.fixed_points(population)["word_share"].sel(word="her").values.round(3)
    array([0.523])

    Two models in one population; the second prefers "her":

    >>> other = meanfield.make_policy(lambda memory: 0.2, ["his", "her"], memory_length=5, model="other")
    >>> mixed = meanfield.Population([policy, other], fractions=[0.7, 0.3])
    >>> mixed
    Population(0.7 SmolLM2-135M-Instruct + 0.3 other {his, her})
    >>> meanfield.fixed_points(mixed)["word_share"].sel(word="her").values.round(3)
    array([0.566])

    Two communities, whose members meet nine times as often inside as outside. A fifth of the first one is committed,
    and turns that one alone:

    >>> def follow(memory):  # says the word that it remembers most, and errs
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.5 if lead == 0 else 0.98 if lead > 0 else 0.02
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> both = meanfield.Population(
    ...     [policy, policy], fractions=[0.5, 0.5], committed={"A": [0.2, 0]}, meets=[[9, 1], [1, 9]]
    ... )
    >>> end = meanfield.solve(both, initial=meanfield.consensus(policy, "B"))["composition"]
    >>> (end @ policy["q"]).sel(word="A").values.round(2)  # of the agents of each who are not committed
    array([0.95, 0.06])

    Agents with four neighbours each, whom fewer committed agents turn:

    >>> for degree in (None, 4):
    ...     population = meanfield.Population(policy, committed={"A": 0.1}, degree=degree)
    ...     end = meanfield.solve(population, initial=meanfield.consensus(policy, "B"), times=[0, 1000])
    ...     print(population, end["word_share"].sel(word="A")[-1].values.round(2), end.attrs["method"])
    Population(0.1 committed to 'A' {A, B}) 0.16 mean field
    Population(0.1 committed to 'A', degree 4 {A, B}) 0.98 pair approximation
    """

    def __init__(
        self,
        policies: xr.Dataset | Sequence[xr.Dataset],
        fractions: Sequence[float] | np.ndarray | xr.DataArray | None = None,
        *,
        committed: Mapping[str, float | Sequence[float] | np.ndarray] | None = None,
        meets: Sequence[Sequence[float]] | np.ndarray | None = None,
        degree: float | None = None,
        group: int | Mapping[int, float] = 2,
        hears: str = "majority",
    ) -> None:
        if not isinstance(policies, (xr.Dataset, Sequence)) or isinstance(policies, str):
            raise InputError(f"policies is a {type(policies).__name__}: expected an xarray.Dataset or several")
        given = {"policy": policies}
        if not isinstance(policies, xr.Dataset):
            given = {f"policies[{m}]": policy for m, policy in enumerate(policies)}
        if not given:
            raise InputError("policies is empty: expected at least one policy")
        self.policies = tuple(single_policy(policy, name) for name, policy in given.items())
        self.words = words_of(self.policies[0])
        self.space: MemorySpace = space_of(self.policies[0])
        for m, policy in enumerate(self.policies):
            if words_of(policy) != self.words or space_of(policy) != self.space:
                raise InputError(
                    f"policies[{m}] is over the words {', '.join(words_of(policy))} with H = "
                    f"{space_of(policy).memory_length}: expected {', '.join(self.words)} with H = "
                    f"{self.space.memory_length}, as policies[0]"
                )
        self.fractions = _validate_fractions(fractions, len(self.policies))
        kinds = None if meets is None else np.array(self.fractions)
        self.meets = None if meets is None else _validate_meets(meets, np.array(self.fractions))
        self.degree = None if degree is None else real_number("degree", degree, least=2)
        beside = {"policies": len(self.policies) > 1, "meets": meets is not None}
        if degree is not None and (wrong := [name for name, there in beside.items() if there]):
            raise InputError(f"degree = {shown(degree)} with {' and '.join(wrong)}: expected one policy and no meets")
        if degree is not None and self.space.n_states > MOST_STATES:
            raise InputError(
                f"degree = {shown(degree)} with {self.space.n_states} memories: expected at most {MOST_STATES}, whose "
                "pairs are followed"
            )
        self.group = _validate_group(group)
        self.hears = one_of("hears", hears, HEARS)
        if self.in_groups and (meets is not None or degree is not None):
            raise InputError(f"group = {self.group}, hears = {hears!r} with meets or degree: expected one of them")
        ways = sum(math.comb(size + len(self.words) - 1, size) for size in self.sizes)
        most = MOST_HEARD // len(self.words) ** 2
        if self.in_groups and ways > most:
            raise InputError(
                f"group = {self.group} of {len(self.words)} words: expected at most {most} ways in which a group may "
                f"speak, not {ways}"
            )
        bound = {} if committed is None else committed
        self.committed = MappingProxyType(_validate_committed(bound, self.words, kinds))
        # In each kind, as given; a copy, since arrays may change and a read-only mapping can't be pickled
        self._bound = {
            word: np.array(share, float) if np.ndim(share) else float(share) for word, share in bound.items()
        }

    @classmethod
    def by_degree(
        cls,
        policy: xr.Dataset,
        degrees: Mapping[float, float] | Sequence[float] | np.ndarray,
        *,
        pick: str = "edge",
        committed: Mapping[str, float] | None = None,
        committed_nodes: str | None = None,
    ) -> Population:
        """Agents on a network, by the number of their neighbours: a kind for each degree (degree-based mean field).

        Neighbours count as independent, of degrees that are not correlated. That neighbours remember each other is left
        out, an error of some 1/degree, which grows with H. Where all have the same degree nothing is left of the graph:
        `Population(policy, degree=…)` has theirs by pairs of neighbours.

        Parameters
        ----------
        policy
            The policy of all agents.
        degrees
            The degree of each node, or the fraction of nodes of each degree, by degree.
        pick
            'edge': an edge at random has those at its ends meet. 'agent': an agent at random meets a neighbour.
        committed
            The fraction of all agents committed to each word.
        committed_nodes
            'hubs': committed agents have the highest degrees, the first word's agents first. Default: anywhere.

        Raises
        ------
        InputError
            If a degree is not positive, or an argument is out of range.

        See Also
        --------
        validation.simulate : the same on a graph, agent by agent

        Examples
        --------
        One agent in ten has nine times as many neighbours as the others, and so takes part in half of all
        conversations:

        >>> policy = meanfield.make_policy(np.array([0.5, 0.9, 0.5, 0.5, 0.1]), ["A", "B"])
        >>> anywhere, hubs = (
        ...     meanfield.Population.by_degree(policy, {1: 0.9, 9: 0.1}, committed={"A": 0.05}, committed_nodes=nodes)
        ...     for nodes in (None, "hubs")
        ... )
        >>> hubs
        Population(0.9 degree 1 + 0.1 degree 9, 0.05 committed to 'A' {A, B})
        >>> [round(meanfield.solve(one)["word_share"].sel(word="A")[-1].item(), 3) for one in (anywhere, hubs)]
        [0.568, 0.683]
        """
        one_of("pick", pick, ("edge", "agent"))
        if isinstance(degrees, Mapping):
            degree, fractions = (real_numbers([*part], "degrees") for part in (degrees.keys(), degrees.values()))
        else:
            degree, counts = np.unique(real_numbers(degrees, "degrees"), return_counts=True)
            fractions = counts / max(1, counts.sum())
        if not len(degree) or not (np.isfinite(degree) & (degree > 0)).all():
            raise InputError(f"degrees = {shown(degrees)}: expected positive numbers")
        bound: Mapping[str, float | np.ndarray] = {} if committed is None else committed
        alone = single_policy(policy)
        _validate_committed(bound, words_of(alone), None)
        if committed_nodes is not None:
            one_of("committed_nodes", committed_nodes, ("hubs",))
            order, room, placed = np.argsort(-degree), fractions.copy(), {}
            for word, number in bound.items():
                taken = np.zeros(len(room))
                taken[order] = np.clip(number - np.cumsum(room[order]) + room[order], 0, room[order])
                room, placed[word] = room - taken, np.divide(taken, fractions, where=fractions > 0, out=0 * room)
            bound = placed
        meets = np.multiply.outer(degree, degree) if pick == "edge" else np.add.outer(degree, degree)
        kinds = [alone.assign_coords(model=f"degree {number:g}") for number in degree]
        return cls(kinds, fractions, committed=bound, meets=meets)

    def __repr__(self) -> str:
        return f"Population({self.name})"

    def __reduce__(self) -> tuple[object, ...]:
        return self._with, (self.policies,)

    @property
    def _with(self) -> partial[Population]:
        """A population of the same options but policies."""
        return partial(
            Population,
            fractions=self.fractions,
            committed=self._bound,
            meets=self.meets,
            degree=self.degree,
            group=self.group,
            hears=self.hears,
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """A name for each policy: its model, numbered where models repeat or have no name."""
        models = [str(policy["model"].item()) if "model" in policy.coords else "policy" for policy in self.policies]
        return tuple(name if models.count(name) == 1 else f"{name} {m}" for m, name in enumerate(models))

    @property
    def model(self) -> str:
        """The models (some, of many), their fractions, the committed fractions and the degree, without the words; ''
        for a single policy without a name.
        """
        parts = [f"{f:.3g} {name}" for f, name in zip(self.fractions, self.kinds, strict=True)]
        kinds = " + ".join(parts if len(parts) <= MOST_NAMED else [*parts[:3], f"{len(parts) - 4} others", parts[-1]])
        if len(self.kinds) == 1:
            (policy,) = self.policies
            kinds = str(policy["model"].item()) if "model" in policy.coords else ""
        bound = [f"{share:.3g} committed to '{word}'" for word, share in self.committed.items() if share > 0]
        graph = "" if self.degree is None else f"degree {self.degree:g}"
        graph = f"groups of {self._sizes}, {self.hears}" if self.in_groups else graph
        return ", ".join([part for part in (kinds, *bound, graph) if part])

    @property
    def name(self) -> str:
        """The models, the committed fractions, the degree and the words, for messages and titles."""
        return f"{self.model} {{{', '.join(self.words)}}}".strip()

    @property
    def in_groups(self) -> bool:
        """Whether agents meet in another way than as two who hear each other."""
        return self.group != 2 or self.hears != "majority"

    @property
    def sizes(self) -> dict[int, float]:
        """The share of meetings by their size."""
        return self.group if isinstance(self.group, dict) else {self.group: 1.0}

    @property
    def _sizes(self) -> str:
        return " or ".join(str(size) if share == 1 else f"{size} ({share:.3g})" for size, share in self.sizes.items())

    @cached_property
    def mixture(self) -> Mixture:
        """The numbers of the population, as arrays; InputError unless all agents meet alike, in pairs."""
        if isinstance(self.all_mix, Groups):
            raise InputError(f"{self.name} meets in groups of {self._sizes}: expected pairs who hear each other")
        return self.all_mix

    @cached_property
    def all_mix(self) -> Mixture | Groups:
        """The numbers of the population, as arrays; InputError unless all agents meet alike."""
        if isinstance(self.arrays, Edges):
            raise InputError(
                f"{self.name} is on a graph, where agents meet neighbours only: expected everybody to meet everybody"
            )
        if isinstance(self.arrays, Blocks):
            raise InputError(
                f"{self.name} has kinds that meet at rates of their own: expected all to meet alike, or "
                "reaction_model(population) in place of the population where that may be given"
            )
        return self.arrays

    @cached_property
    def arrays(self) -> Mixture | Blocks | Edges | Groups:
        """The numbers of the population, as arrays."""
        q, fractions = np.stack([policy["q"].values for policy in self.policies]), np.array(self.fractions)
        if self.meets is None:
            committed = np.array([self.committed.get(word, 0.0) for word in self.words])
            mixture = Mixture(q, (1 - committed.sum()) * fractions, committed)
            if self.in_groups:
                return Groups(*mixture, *Hearing.of(self.group, len(self.words), self.hears))
            return mixture if self.degree is None else Edges(*mixture, np.array(self.degree))
        bound = np.stack([np.broadcast_to(self._bound.get(word, 0.0), fractions.shape) for word in self.words], axis=1)
        meets = self.meets / (fractions @ self.meets @ fractions)
        return Blocks(q, np.maximum(1 - bound.sum(1), 0) * fractions, bound * fractions[:, None], meets)

    @property
    def coords(self) -> dict[str, object]:
        """Coordinates of results: words, states, and the policy and fraction of each component."""
        return {
            "state": np.arange(self.space.n_states),
            **word_coords(self.words),
            "component": np.arange(len(self.policies)),
            "component_policy": ("component", np.array(self.kinds, dtype=str)),
            "component_fraction": ("component", np.array(self.fractions)),
            "committed": ("word", np.array([self.committed.get(word, 0.0) for word in self.words])),
        }

    def fractions_of_all(self, composition: xr.DataArray | np.ndarray) -> np.ndarray:
        """The composition of `reaction_model(population)`: fractions of all agents, the committed ones last.

        Parameters
        ----------
        composition
            Fractions of each kind, as `empty_memories` returns them.
        """
        shape = (len(self.policies), self.space.n_states)
        x = values_in_order(composition, {"component": range(shape[0]), "state": range(shape[1])}, "composition")
        committed = self.arrays.committed
        return np.append(np.broadcast_to(x, shape) * self.arrays.share[:, None], committed[committed > 0])

    @property
    def sha256(self) -> str:
        """SHA-256 over policies, fractions and committed fractions, hexadecimal."""
        digest = hashlib.sha256("".join(policy_hash(policy) for policy in self.policies).encode())
        for numbers in self.arrays[1:]:
            digest.update(np.ascontiguousarray(numbers, dtype="<f8").tobytes())
        return digest.hexdigest()

    def with_committed(self, word: str, fraction: float) -> Population:
        """The same population with this fraction of all agents committed to `word`."""
        return self._with(self.policies, committed={**self._bound, word: fraction})

    def with_fraction(self, fraction: float) -> Population:
        """The same population with this fraction of the last policy; the others keep their proportions.

        Raises
        ------
        InputError
            If there is only one policy, or the last of three or more has the fraction 1, which leaves the others no
            proportions.
        """
        others = np.array(self.fractions[:-1])
        if len(others) == 1:
            others = np.ones(1)
        if not others.sum() > 0:
            raise InputError(
                f"fractions = {self.fractions}: expected a policy before the last with a positive fraction"
            )
        fractions = [*((1 - fraction) * others / others.sum()), fraction]
        return self._with(self.policies, fractions=fractions)


def as_population(policy: xr.Dataset | Population) -> Population:
    """The population itself, or a population of a single policy."""
    if isinstance(policy, Population):
        return policy
    return Population(policy if isinstance(policy, xr.Dataset) else single_policy(policy))  # which refuses all else


def without_component(result: xr.Dataset, policy: xr.Dataset | Population) -> xr.Dataset:
    """`result` without the dim `component` and its coordinates if `policy` is a single policy."""
    if isinstance(policy, Population):
        return result
    alone = result.isel(component=0)
    return alone.drop_vars(["component", "component_policy", "component_fraction", "committed"], errors="ignore")


def _validate_fractions(
    fractions: Sequence[float] | np.ndarray | xr.DataArray | None, n_policies: int
) -> tuple[float, ...]:
    if fractions is None and n_policies == 1:
        return (1.0,)
    if isinstance(fractions, Mapping):
        raise InputError(f"fractions = {shown(fractions)}: expected a number for each policy, or by word committed=…")
    labels = {"component": range(n_policies)}
    values = np.empty(0) if fractions is None else values_in_order(fractions, labels, "fractions")
    good = values.shape == (n_policies,) and bool((values >= 0).all()) and abs(values.sum() - 1) <= ROUNDING
    if not good:
        found = f", not to {values.sum():.12g}" if values.shape == (n_policies,) else ""
        raise InputError(f"fractions = {shown(fractions)}: expected {n_policies} numbers ≥ 0 that sum to 1{found}")
    return tuple((values / values.sum()).tolist())  # rounding errors of the sum would not conserve Σx


def _validate_group(group: int | Mapping[int, float]) -> int | dict[int, float]:
    """The size of all groups, or the share of meetings by size."""
    if not isinstance(group, Mapping):
        return whole_number("group", group, 2, LARGEST_GROUP)
    shares = {
        whole_number("group", size, 2, LARGEST_GROUP): real_number(f"group[{size}]", share, above=0, most=1)
        for size, share in group.items()
    }
    if abs((total := sum(shares.values())) - 1) > ROUNDING:
        raise InputError(f"group = {shown(group)}: expected shares of meetings that sum to 1, not to {total:.12g}")
    return {size: share / total for size, share in sorted(shares.items())} if len(shares) > 1 else min(shares)


def _validate_committed(
    committed: Mapping[str, float | Sequence[float] | np.ndarray], words: tuple[str, ...], fractions: np.ndarray | None
) -> dict[str, float]:
    """Fractions of all agents, by word; with `fractions` of kinds there may be one for each kind."""
    if not isinstance(committed, Mapping):
        raise InputError(f"committed = {committed!r}: expected a mapping of words to fractions")
    for word, share in committed.items():
        if word not in words:
            raise InputError(f"committed has the word {word!r}: expected some of {', '.join(words)}")
        if fractions is None:
            real_number(f"committed[{word!r}]", share, least=0, most=1)
            continue
        part = real_numbers(share, f"committed[{word!r}]")
        if part.shape not in ((), fractions.shape) or not ((part >= 0) & (part <= 1)).all():
            raise InputError(f"committed[{word!r}] = {shown(share)}: expected 0 to 1, or so for each kind")
    kinds = np.ones(1) if fractions is None else fractions
    parts = {word: np.broadcast_to(share, kinds.shape) for word, share in committed.items()}
    together = sum(parts.values(), np.zeros(len(kinds)))
    if fractions is not None and (together > 1 + ROUNDING).any():
        raise InputError(f"committed sums to {shown(together)} in the kinds: expected at most 1 in each")
    if not (total := float(together @ kinds)) < 1:
        raise InputError(f"committed sums to {total}: expected less than 1")
    return {word: float(part @ kinds) for word, part in parts.items()}


def _validate_meets(meets: Sequence[Sequence[float]] | np.ndarray, fractions: np.ndarray) -> np.ndarray:
    rates = real_numbers(meets, "meets")
    if rates.shape != 2 * fractions.shape or not (np.isfinite(rates) & (rates >= 0) & (rates == rates.T)).all():
        raise InputError(
            f"meets = {shown(meets)}: expected a symmetric matrix of {len(fractions)} rows, of numbers ≥ 0"
        )
    if len(alone := np.flatnonzero(~(rates[:, fractions > 0] > 0).any(1))):
        raise InputError(f"meets = {shown(meets)}: expected somebody to meet for agents of policies[{alone[0]}]")
    return rates
