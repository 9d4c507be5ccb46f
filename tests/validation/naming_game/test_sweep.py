"""Sweeps: what they hold, that they go on where they were killed, and that a cluster gives the same bytes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import meanfield
from _policies import random_policy
from meanfield import StorageError
from validation import simulate, sweep
from validation.naming_game import Convention, _sweep, open_sweep

ARGUMENTS = {"n_agents": [6, 20], "runs": 40, "seeds": [1, 2], "committed": [{}, {"a": 2}, {"d": 1}], "max_rounds": 30}


def policies() -> list:
    """Two that converge often, over different words."""
    q = np.array([0.6, 0.99, 0.5, 0.5, 0.01])
    return [meanfield.make_policy(q, ["a", "b"], model="m"), meanfield.make_policy(1 - q, ["c", "d"], model="m")]


def contents(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    store = tmp_path_factory.mktemp("sweep") / "whole.zarr"
    sweep(policies(), store, **ARGUMENTS)
    return store


def test_holds_what_simulations_give(finished: Path) -> None:
    result = open_sweep(finished)
    assert result["done"].all()
    assert dict(result.sizes) == {"policy": 2, "case": 3, "seed": 2, "n_agents": 2, "run": 40, "word": 2}
    alone = simulate(policies()[0], n_agents=[6, 20], runs=40, seed=2, committed={"a": 2}, max_rounds=30)
    ours = result.isel(policy=0, case=1).sel(seed=2)
    assert (ours["consensus_word"].fillna("").values == alone["consensus_word"].fillna("").values).all()
    np.testing.assert_array_equal(ours["consensus_round"], alone["consensus_round"])
    assert ours["consensus_word"].notnull().any(), "where there is something to compare"
    assert result["consensus_round"].isel(policy=0, case=2).isnull().all(), "the first policy does not have the word d"


def test_populations_are_swept_as_policies_are(tmp_path: Path) -> None:
    first, second = policies()[0], random_policy(5)
    mixed = meanfield.Population([first, second], fractions=[0.5, 0.5])
    bound = meanfield.Population(first, committed={"b": 0.25})
    result = sweep([first, mixed, bound], tmp_path / "store.zarr", n_agents=8, runs=30, max_rounds=30)
    assert result["model"].values.tolist() == ["m", "0.5 m + 0.5 random", "m, 0.25 committed to 'b'"]
    for p, member in enumerate((first, mixed, bound)):
        alone = simulate(member, n_agents=8, runs=30, seed=0, max_rounds=30)["consensus_round"]
        np.testing.assert_array_equal(result["consensus_round"].isel(policy=p, case=0, seed=0), alone)
    assert pickle.loads(pickle.dumps(bound)).sha256 == bound.sha256, "what a cluster needs"
    with pytest.raises(meanfield.InputError, match=r"committed = .* beside a population with committed fractions"):
        sweep(bound, tmp_path / "other.zarr", n_agents=8, runs=2, committed=[{}, {"a": 1}])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_goes_on_where_it_was_stopped(error, finished: Path, tmp_path: Path, monkeypatch) -> None:
    """Finished parts are not computed again, also where a kill has left a part of a file."""
    store, write, written = tmp_path / "stopped.zarr", _sweep._write, []

    def stops(*arguments):
        written.append(write(*arguments))
        if len(written) == 5:
            raise error

    full = isinstance(error, OSError)
    told = r"stopped.zarr: .* \(No space left on device\); finished ones are kept" if full else None
    with monkeypatch.context() as patch:
        patch.setattr(_sweep, "_write", stops)
        with pytest.raises(StorageError if full else KeyboardInterrupt, match=told):
            sweep(policies(), store, **ARGUMENTS)
    assert open_sweep(store)["done"].sum() == 5
    (store / "done" / "0.partial").write_bytes(b"left by a kill")
    times = {path: path.stat().st_mtime_ns for path in store.glob("consensus_number/c/**/*") if path.is_file()}
    sweep(policies(), store, **ARGUMENTS)
    assert contents(store) == contents(finished)
    assert times == {path: path.stat().st_mtime_ns for path in times}


RING = np.column_stack([np.arange(8), (np.arange(8) + 1) % 8])
GRAPHS = {"everybody": None, "ring": RING, "triples": [{k, (k + 1) % 8, (k + 2) % 8} for k in range(8)]}


def random_ring(n_agents: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(n_agents)[RING % n_agents]


def test_topologies_are_one_more_dimension(tmp_path: Path) -> None:
    options = {"n_agents": 8, "runs": 20, "max_rounds": 30, "committed": [{}, {"a": 2}]}
    graphs = {**GRAPHS, "random": random_ring}
    result = sweep(policies()[0], tmp_path / "store.zarr", topologies=graphs, **options)
    assert result["consensus_round"].dims == ("policy", "case", "seed", "n_agents", "topology", "run")
    assert result["done"].all() and result["topology"].values.tolist() == list(graphs)
    for name, topology in graphs.items():
        alone = simulate(
            policies()[0], n_agents=8, runs=20, seed=0, max_rounds=30, committed={"a": 2}, topology=topology
        )
        ours = result.isel(policy=0, case=1, seed=0).sel(topology=name)
        np.testing.assert_array_equal(ours["consensus_round"], alone["consensus_round"])
    assert meanfield.load(meanfield.save(result, tmp_path / "sweep.nc")).identical(result)
    before = contents(tmp_path / "store.zarr")
    (chunk,) = (path for path in (tmp_path / "store.zarr" / "done" / "c").glob("0/1/0/0/2"))
    chunk.unlink()
    rounds = tmp_path / "store.zarr" / "consensus_round" / "c" / "0" / "1" / "0" / "0" / "2" / "0"
    rounds.write_bytes(b"left by a kill")
    sweep(policies()[0], tmp_path / "store.zarr", topologies={**graphs, "ring": RING.copy()}, **options)
    assert contents(tmp_path / "store.zarr") == before
    for other in ({**graphs, "ring": RING[:-1]}, {**graphs, "random": lambda n, seed: RING}, GRAPHS, None):
        with pytest.raises(meanfield.InputError, match="holds a sweep with other arguments"):
            sweep(policies()[0], tmp_path / "store.zarr", topologies=other, **options)


def test_a_store_of_other_arguments_is_refused(finished: Path, tmp_path: Path) -> None:
    before = contents(finished)
    with pytest.raises(meanfield.InputError, match="holds a sweep with other arguments"):
        sweep(policies(), finished, **{**ARGUMENTS, "runs": 41})
    with pytest.raises(meanfield.InputError, match="holds a sweep with other arguments"):
        sweep([random_policy(1), random_policy(2)], finished, **{**ARGUMENTS, "committed": [{}]})
    assert contents(finished) == before
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(meanfield.InputError, match="is not empty and holds no sweep"):
        sweep(policies(), tmp_path, **ARGUMENTS)
    with pytest.raises(meanfield.InputError, match="expected a folder that a sweep has written"):
        open_sweep(tmp_path)


def test_a_cluster_gives_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    from dask.distributed import Client, LocalCluster

    options = {"n_workers": 1, "processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        result = sweep(policies(), tmp_path / "cluster.zarr", client=client, **ARGUMENTS)
    assert result["done"].all()
    assert contents(tmp_path / "cluster.zarr") == contents(finished)
    task = policies()[0], {"committed": {"a": 2}}
    assert pickle.loads(pickle.dumps(task))[0].identical(task[0]), "what processes are sent"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": []}, r"seeds = \[\]: expected"),
        ({"seeds": [1, 1]}, r"seeds = \[1, 1\]: expected"),
        ({"committed": [{"e": 1}]}, "committed has .*: expected at most one word"),
        ({"committed": [{"a": 1, "b": 1}]}, "expected at most one word"),
        ({"committed": [{"a": 7}]}, "committed = {'a': 7}: expected at most n_agents = 6"),
        ({"runs": 0}, "runs = 0"),
        ({"seeds": 3}, "seeds = 3: expected a sequence"),
        ({"committed": {"a": 1}}, "committed = {'a': 1}: expected a sequence of mappings"),
        ({"initial": "b c"}, "initial|word"),
        ({"convention": "002"}, "convention = '002'"),
        ({"convention": Convention(0.9)}, "convention = Convention"),
        ({"max_rounds": 0}, "max_rounds = 0"),
        ({"topologies": {}}, "topologies = {}: expected a mapping of names to graphs"),
        ({"topologies": {"ring": RING}}, "topologies, ring: topology has 8 nodes: expected one for each of 6 agents"),
        ({"topologies": {"path": RING[:5]}}, "topology has 6 nodes: expected one for each of 20"),
    ],
)
def test_wrong_input_is_named(arguments: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(meanfield.InputError, match=message):
        sweep(policies(), tmp_path / "store.zarr", **{**ARGUMENTS, **arguments})
    assert not (tmp_path / "store.zarr").exists()
