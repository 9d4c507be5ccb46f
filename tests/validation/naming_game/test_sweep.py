"""Sweeps: what they hold, that they go on where they were killed, and that a cluster gives the same bytes."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import meanfield
from _paths import importing
from _policies import random_policy
from validation import simulate, sweep
from validation.naming_game import Convention, open_sweep

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
    with pytest.raises(meanfield.InputError, match="expected committed agents in one of them"):
        sweep(bound, tmp_path / "other.zarr", n_agents=8, runs=2, committed=[{}, {"a": 1}])


def test_goes_on_after_it_was_killed(finished: Path, tmp_path: Path) -> None:
    """Killed without warning after a few of 24 combinations; what was done is not done again."""
    store = tmp_path / "killed.zarr"
    script = (
        "import time, test_sweep, validation.naming_game._sweep as module\n"
        "write = module._write\n"
        "module._write = lambda *arguments: (write(*arguments), time.sleep(0.3))\n"
        f"module.sweep(test_sweep.policies(), {str(store)!r}, **test_sweep.ARGUMENTS)\n"
    )
    environment = importing(Path(__file__).parent)
    process = subprocess.Popen([sys.executable, "-c", script], env=environment)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(store.glob("done/c/**/*"))) < 8:
        assert process.poll() is None, "it is killed while it runs"
        time.sleep(0.05)
    process.kill()
    process.wait()
    before = open_sweep(store)["done"].values
    assert 0 < before.sum() < before.size
    times = {path: path.stat().st_mtime_ns for path in store.glob("consensus_number/c/**/*") if path.is_file()}
    sweep(policies(), store, **ARGUMENTS)
    assert contents(store) == contents(finished)
    kept = [path for path, time_ns in times.items() if path.stat().st_mtime_ns == time_ns]
    assert len(kept) >= len(times) - 1, "all but one that may have been written and not marked"


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


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"n_workers": 1, "processes": False}, id="thread"),
        pytest.param({"n_workers": 2, "processes": True}, id="processes", marks=pytest.mark.slow),
    ],
)
def test_a_cluster_gives_the_same_bytes(options: dict, finished: Path, tmp_path: Path) -> None:
    from dask.distributed import Client, LocalCluster

    with LocalCluster(threads_per_worker=1, dashboard_address=None, **options) as cluster, Client(cluster) as client:
        result = sweep(policies(), tmp_path / "cluster.zarr", client=client, **ARGUMENTS)
    assert result["done"].all()
    assert contents(tmp_path / "cluster.zarr") == contents(finished)
    task = policies()[0], {"committed": {"a": 2}}
    assert pickle.loads(pickle.dumps(task))[0].identical(task[0]), "what processes are sent"


def test_saved_and_loaded(finished: Path, tmp_path: Path) -> None:
    result = open_sweep(finished)
    assert meanfield.load(meanfield.save(result, tmp_path / "sweep.nc")).identical(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": []}, r"seeds = \[\]: expected"),
        ({"seeds": [1, 1]}, r"seeds = \[1, 1\]: expected"),
        ({"committed": [{"e": 1}]}, "committed has .*: expected at most one word"),
        ({"committed": [{"a": 1, "b": 1}]}, "expected at most one word"),
        ({"committed": [{"a": 7}]}, "committed has 7 agents: expected at most n_agents = 6"),
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


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_what_is_done_is_kept(finished: Path, tmp_path: Path) -> None:
    """The disk takes files of at most 1 byte, or of at most 500: chunks, and not the description of the store."""
    pytest.importorskip("resource", reason="this system has no limit on the size of a file")
    store = tmp_path / "full.zarr"
    script = (
        "import resource, signal, test_sweep, meanfield, validation.naming_game._sweep as module\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails as on a full disk\n"
        "write, number = module._write, []\n"
        "_, most = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "def limited(*arguments):\n"
        "    number.append(1)\n"
        "    if len(number) == 5: resource.setrlimit(resource.RLIMIT_FSIZE, (1, most))\n"
        "    write(*arguments)\n"
        "module._write = limited\n"
        "for size in (500, most):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))\n"
        "    try:\n"
        f"        module.sweep(test_sweep.policies(), {str(store)!r}, **test_sweep.ARGUMENTS)\n"
        "    except meanfield.StorageError as error:\n"
        "        print(error)\n"  # asyncio may say on standard error what writes at the same time met
    )
    environment = importing(Path(__file__).parent)
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    lines = ended.stdout.splitlines()
    assert len(lines) == 2, ended.stderr
    for line in lines:
        assert line.startswith(f"store = {store}: can't be read and written (File too large)")
    assert open_sweep(store)["done"].sum() == 4
    (store / "done" / "0.partial").write_bytes(b"left by a kill")
    sweep(policies(), store, **ARGUMENTS)
    assert contents(store) == contents(finished)
