"""Sweeps: many ensembles, written to a Zarr store as they finish, so an interrupted sweep goes on."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
import zarr
from tqdm.auto import tqdm

from meanfield import InputError, Population, StorageError, each_policy
from meanfield.toolbox import LARGEST_SEED, check_memory, path_of, policy_hash, shown, stamp, whole_number, words_of
from validation._engine.arguments import check_ensembles, name_in, population_sizes
from validation._engine.topology import Topology, digest
from validation.naming_game._simulate import ROUNDS_PLAYED, simulate

BYTES_A_RUN = 30  # of a store that is read, as measured
DIMS = ("policy", "case", "seed", "n_agents", "topology")
NO_CONSENSUS = -1

Member = xr.Dataset | Population
Place = tuple[int, ...]  # of DIMS
Result = tuple[np.ndarray, np.ndarray]  # number of the word of consensus, and its round, for each run


class _Plan(NamedTuple):
    """The combinations of a sweep."""

    policies: list[Member]
    cases: list[tuple[str, int]]  # a word and how many agents are committed to it; ("", 0) is nobody
    seeds: list[int]
    sizes: list[int]
    runs: int
    options: dict[str, Any]
    topologies: dict[str, Any]  # none where everybody meets everybody, which is not a dimension of a store

    @property
    def shape(self) -> tuple[int, ...]:
        named = [len(self.topologies)] if self.topologies else []
        return len(self.policies), len(self.cases), len(self.seeds), len(self.sizes), *named

    def fingerprint(self) -> str:
        """A hash of everything that must be the same for a store to be continued."""
        graphs = {name: self.graphs(topology) for name, topology in self.topologies.items()}
        hashes = [p.sha256 if isinstance(p, Population) else policy_hash(p) for p in self.policies]
        content = [hashes, *self[1:-1], *([graphs] if graphs else [])]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def graphs(self, topology: Any) -> list[str]:
        """Hashes of a graph, or of the first one that a function makes for each size and seed."""
        if topology is None:
            return []
        found, places = Topology.of(topology), itertools.product(self.sizes, self.seeds)
        return [digest(found.graphs(size, seed, np.arange(1))[0]) for size, seed in places]

    def arguments(self, place: Place) -> tuple[Member, dict[str, Any]] | None:
        """The arguments of `simulate`; None where the policy does not have the word of the case."""
        policy, (word, number) = self.policies[place[0]], self.cases[place[1]]
        if word and word not in _words(policy):
            return None
        options = {"n_agents": self.sizes[place[3]], "runs": self.runs, "seed": self.seeds[place[2]]}
        if self.topologies:
            options["topology"] = list(self.topologies.values())[place[4]]
        return policy, {**options, "committed": {word: number} if word else None, **self.options}


def sweep(
    policies: Member | Iterable[Member],
    store: str | os.PathLike[str],
    *,
    n_agents: int | Sequence[int],
    runs: int,
    seeds: Sequence[int] = (0,),
    committed: Sequence[Mapping[str, int]] = ({},),
    initial: str | None = None,
    convention: str = "004",
    max_rounds: int = 1000,
    topologies: Mapping[str, Any] | None = None,
    client: Any = None,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate every combination of policy, committed agents, seed and size, into a Zarr store that can be resumed.

    Each finished combination is written and then marked as done. After any interruption the same call simulates the
    missing combinations, and ends with the same bytes as a sweep without interruption.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, a `meanfield.Population`, or several of these. A `LazyPolicy` is
        refused: a store could not tell whether it is the same one.
    store
        Folder of the Zarr store: new, or left by a sweep with the same arguments.
    n_agents, runs, initial, convention, max_rounds
        As for `simulate`.
    seeds
        Different seeds, each an ensemble of its own.
    committed
        Cases: each a mapping of at most one word to a number of agents committed to it. A policy without the word is
        skipped. Populations with committed fractions allow no case but ``{}``, nobody.
    topologies
        Who meets whom: a mapping of names to `topology` of `simulate`; None: everybody meets everybody. The result has
        one more dim for it. A store is continued if graphs have the same edges and functions make the same first graph
        for each size and seed.
    client
        A `distributed.Client`, whose workers simulate combinations; this process writes them. Default: one after the
        other, each on all cores.
    progress
        Show a progress bar.

    Returns
    -------
    The store as a Dataset, see `open_sweep`.

    Raises
    ------
    InputError
        If an argument is out of range (see `simulate`), the store holds something else, or reading it would take more
        memory than `simulate` may take.
    StorageError
        If the store can't be written; finished combinations stay.

    See Also
    --------
    validation.naming_game.open_sweep : reads the finished combinations
    simulate : one policy

    Examples
    --------
    >>> import tempfile
    >>> policies = meanfield.datasets.smollm2().sel(pair=["his/her", "woman/man"])
    >>> with tempfile.TemporaryDirectory() as store:
    ...     found = validation.sweep(policies, store, n_agents=[10, 20], runs=50, max_rounds=20)
    ...     found["consensus_word"].notnull().mean("run").squeeze().values.round(2)  # by pair and size
    array([[0., 0.],
           [1., 1.]])

    Agents on graphs:

    >>> import networkx
    >>> def follow(memory):  # says the word that it remembers most, and errs
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.5 if lead == 0 else 0.99 if lead > 0 else 0.01
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> graphs = {"everybody": None, "ring": lambda n, seed: networkx.cycle_graph(n)}
    >>> with tempfile.TemporaryDirectory() as store:
    ...     found = validation.sweep(policy, store, n_agents=20, runs=200, topologies=graphs)
    ...     found["consensus_round"].median("run").squeeze().to_series().to_dict()
    {'everybody': 11.0, 'ring': 49.0}
    """
    if not isinstance(store, (str, os.PathLike)) or "\0" in os.fspath(store):
        raise InputError(f"store = {shown(store)}: expected the name of a folder")
    if client is not None and not hasattr(client, "submit"):
        raise InputError(f"client = {shown(client)}: expected a dask.distributed.Client")
    options = {"initial": initial, "convention": convention, "max_rounds": max_rounds}
    plan = _plan(policies, n_agents, runs, seeds, committed, options, topologies)
    with _one_line(Path(store)):
        group = _open_or_create(Path(store), plan)
        done = np.asarray(group["done"])
    tasks = [place for place in itertools.product(*map(range, plan.shape)) if not done[place]]
    total = int(np.prod(plan.shape))
    with tqdm(total=total, initial=total - len(tasks), desc="sweep", disable=not progress, leave=False) as bar:
        for place, result in _results(plan, tasks, client):
            with _one_line(Path(store)):
                _write(group, place, result)
            bar.update()
    return open_sweep(store)


def open_sweep(store: str | os.PathLike[str]) -> xr.Dataset:
    """Read the finished combinations of a sweep.

    Returns
    -------
    Dataset over (policy, case, seed, n_agents, run) with `consensus_word` and `consensus_round` as `simulate` has them,
    and `done` (policy, case, seed, n_agents), whether the combination is finished; with the coordinates `model`,
    `pair` (policy), `word_label` (policy, word), `committed_word` and `committed_agents` (case). Combinations that are
    not finished, or whose policy does not have the word, have no consensus. A sweep with `topologies` has the further
    dim `topology` after n_agents, with the names of the graphs.

    Raises
    ------
    InputError
        If there is no sweep in `store`.

    See Also
    --------
    sweep : writes it

    Examples
    --------
    >>> import tempfile
    >>> policies = meanfield.datasets.smollm2().sel(pair=["his/her", "woman/man"])
    >>> with tempfile.TemporaryDirectory() as store:
    ...     swept = validation.sweep(policies, store, n_agents=10, runs=50, max_rounds=20)
    ...     found = validation.naming_game.open_sweep(store)
    ...     found["pair"].values.tolist(), bool(found["done"].all())
    (['his/her', 'woman/man'], True)
    """
    if not (path_of(store, "store") / "zarr.json").exists():
        raise InputError(f"store = {os.fspath(store)}: expected a folder that a sweep has written")
    group = zarr.open_group(store, mode="r")
    about = json.loads(str(group.attrs["sweep"]))
    number, rounds = np.asarray(group["consensus_number"]), np.asarray(group["consensus_round"])
    labels = np.array(about["words"], dtype=object)
    extended = np.concatenate([labels, np.full((len(labels), 1), None)], axis=1)  # -1 points to the last
    words = extended[np.arange(len(labels)).reshape(-1, *[1] * (number.ndim - 1)), number]
    topologies = about.get("topologies", [])
    dims = DIMS[: number.ndim - 1]
    result = xr.Dataset(
        {
            "consensus_word": ((*dims, "run"), words, {"long_name": "word of consensus", "missing": ""}),
            "consensus_round": ((*dims, "run"), np.where(rounds == 0, np.nan, rounds.astype(float)), ROUNDS_PLAYED),
            "done": (dims, np.asarray(group["done"]), {"long_name": "whether the combination is finished"}),
        },
        coords={
            "model": ("policy", about["models"]),
            "pair": ("policy", about["pairs"]),
            "word": np.arange(labels.shape[1]),
            "word_label": (("policy", "word"), np.array(about["words"])),
            "committed_word": ("case", [word for word, _ in about["cases"]]),
            "committed_agents": ("case", [number for _, number in about["cases"]]),
            "seed": about["seeds"],
            "n_agents": about["sizes"],
            "run": np.arange(number.shape[-1]),
            **({"topology": topologies} if topologies else {}),
        },
    )
    return stamp(result, "sweep", **about["options"])


def _plan(
    policies: Member | Iterable[Member],
    n_agents: int | Sequence[int],
    runs: int,
    seeds: Sequence[int],
    committed: Sequence[Mapping[str, int]],
    options: dict[str, Any],
    topologies: Mapping[str, Any] | None,
) -> _Plan:
    """InputError also for everything that `simulate` would refuse: a store made for it could not be continued."""
    members = _members(policies)
    if not members:
        raise InputError("policies is empty: expected at least one policy")
    counts = {len(_words(member)) for member in members}
    if len(counts) > 1:
        raise InputError(f"policies have {', '.join(map(str, sorted(counts)))} words: expected as many in each")
    known = {word for member in members for word in _words(member)}
    if isinstance(committed, Mapping) or not isinstance(committed, Sequence):
        raise InputError(f"committed = {committed!r}: expected a sequence of mappings, as in [{{}}, {{'A': 2}}]")
    if isinstance(seeds, str) or not isinstance(seeds, Iterable) or getattr(seeds, "ndim", 1) == 0:
        raise InputError(f"seeds = {shown(seeds)}: expected a sequence of numbers")
    cases = []
    for case in committed:
        if not isinstance(case, Mapping):
            raise InputError(f"committed has {shown(case)}: expected mappings of words to numbers, as {{'A': 2}}")
        bound = {word: whole_number(f"committed[{word!r}]", number, 0) for word, number in case.items() if number != 0}
        if len(bound) > 1 or not set(bound) <= known:
            raise InputError(f"committed has {dict(case)}: expected at most one word, and one of the policies' words")
        cases.append(next(iter(bound.items()), ("", 0)))
    numbers = [whole_number("seeds", seed, 0, LARGEST_SEED) for seed in seeds]
    for name, values in (("seeds", numbers), ("committed", cases)):
        if not values or len(set(values)) < len(values):
            raise InputError(f"{name} = {values}: expected one or several that differ")
    sizes = population_sizes(n_agents)
    if topologies is not None and (
        not isinstance(topologies, Mapping) or not topologies or not all(isinstance(name, str) for name in topologies)
    ):
        raise InputError(f"topologies = {shown(topologies)}: expected a mapping of names to graphs")
    plan = _Plan(members, cases, numbers, sizes, whole_number("runs", runs, 1), options, dict(topologies or {}))
    whole_number("max_rounds", options["max_rounds"], 1)
    for size in sizes:
        check_ensembles([size], plan.runs)
    combinations = math.prod(plan.shape)
    asked = f"runs = {plan.runs} of each of {combinations} combinations"
    check_memory(BYTES_A_RUN * combinations * plan.runs, asked, "fewer runs or combinations a store")
    if not isinstance(options["convention"], str):
        raise InputError(f"convention = {options['convention']!r}: expected a name, as a store keeps it")
    smallest = sizes.index(min(sizes))
    for place in itertools.product(*map(range, plan.shape)):
        if not place[2] and (plan.topologies or place[3] == smallest) and (arguments := plan.arguments(place)):
            try:
                simulate(arguments[0], **{**arguments[1], "runs": 1, "max_rounds": 1})
            except InputError as error:
                if plan.topologies:
                    raise InputError(f"topologies, {list(plan.topologies)[place[4]]}: {error}") from None
                raise
    return plan


def _members(policies: Member | Iterable[Member]) -> list[Member]:
    if isinstance(policies, Population):
        return [policies]
    if isinstance(policies, xr.Dataset):
        return list(each_policy(policies))
    if isinstance(policies, str) or not isinstance(policies, Iterable) or getattr(policies, "ndim", 1) == 0:
        raise InputError(f"policies has {shown(policies)}: expected policies or Populations")
    return [member for one in policies for member in _members(one)]


def _words(member: Member) -> tuple[str, ...]:
    return member.words if isinstance(member, Population) else words_of(member)


@contextmanager
def _one_line(store: Path) -> Iterator[None]:
    """StorageError that names the store, for all that the disk refuses."""
    try:
        yield
    except OSError as error:
        why = f"can't be read and written ({error.strerror or error}); finished ones are kept, start again to go on"
        raise StorageError(f"store = {store}: {why}") from None


def _open_or_create(store: Path, plan: _Plan) -> zarr.Group:
    if (store / "zarr.json").exists():
        group = zarr.open_group(store, mode="r+")
        if "fingerprint" in group.attrs:
            if group.attrs["fingerprint"] != plan.fingerprint():
                raise InputError(f"store = {store} holds a sweep with other arguments: expected a new folder")
            for partial in store.rglob("*.partial"):  # files that Zarr was writing when it was killed
                partial.unlink()
            return group
    elif store.exists() and any(store.iterdir()):
        raise InputError(f"store = {store} is not empty and holds no sweep: expected a new folder")
    group = zarr.open_group(store, mode="a")
    shape, one = (*plan.shape, plan.runs), (*(1 for _ in plan.shape), plan.runs)
    for name, dtype, fill in (("consensus_number", "int16", NO_CONSENSUS), ("consensus_round", "int32", 0)):
        group.create_array(name, shape=shape, chunks=one, dtype=dtype, fill_value=fill, overwrite=True)
    group.create_array("done", shape=plan.shape, chunks=one[:-1], dtype="bool", fill_value=False, overwrite=True)
    about: dict[str, Any] = {
        name + "s": [_label(member, name) for member in plan.policies] for name in ("model", "pair")
    }
    about |= {"words": [_words(member) for member in plan.policies], "cases": plan.cases, "seeds": plan.seeds}
    about |= {"sizes": plan.sizes, "options": plan.options}
    about |= {"topologies": list(plan.topologies)} if plan.topologies else {}
    group.attrs["sweep"] = json.dumps(about)
    # Last, so that a store without it is one whose making was interrupted
    group.attrs["fingerprint"] = plan.fingerprint()
    return group


def _label(member: Member, name: str) -> str:
    if isinstance(member, Population):
        return member.model if name == "model" else "/".join(member.words)
    return name_in(member, name)


def _results(plan: _Plan, tasks: list[Place], client: Any) -> Iterator[tuple[Place, Result | None]]:
    """The results of `tasks`, None where the policy does not have the word; in order, or as the workers finish."""
    waiting = {}
    for place in tasks:
        arguments = plan.arguments(place)
        if client is None or arguments is None:
            yield place, arguments and _simulate(*arguments)
        else:
            waiting[client.submit(_simulate, *arguments, pure=False)] = place
    if waiting:
        from dask.distributed import as_completed

        for future in as_completed(list(waiting)):
            yield waiting[future], future.result()


def _simulate(policy: Member, options: dict[str, Any]) -> Result:
    runs = simulate(policy, **options).isel(n_agents=0)
    words = {word: w for w, word in enumerate(_words(policy))}
    number = np.array([words.get(word, NO_CONSENSUS) for word in runs["consensus_word"].values], dtype=np.int16)
    return number, runs["consensus_round"].fillna(0).values.astype(np.int32)


def _write(group: zarr.Group, place: Place, result: Result | None) -> None:
    if result is not None:
        group["consensus_number"][place] = result[0]
        group["consensus_round"][place] = result[1]
    # After the data: unmarked combinations are done again.
    group["done"][place] = True
