"""The `meanfield` command as a person runs it: files from step to step, and errors of one line."""

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from unittest.mock import create_autospec
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
import policy_extraction
import theory
import validation
from _endpoint_counts import table as counts
from _labelled_calls import conformist
from _paths import ROOT
from _policies import random_policy
from _real_populations import populations
from _refusals import refused
from meanfield import cli
from meanfield.cli import _populations
from meanfield.cli._analyses import ANALYSES
from meanfield.cli._analysis import POLICY

COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run `meanfield` with arguments in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEANFIELD_TRACEBACK", "1")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["meanfield", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return end.value.code, captured.out, captured.err

    return run


@pytest.fixture
def policies(tmp_path):
    return meanfield.save(random_policy(3, 2, 2, concentration=0.2), tmp_path / "policies.nc")


@pytest.fixture
def two_attractors(tmp_path):
    return meanfield.save(conformist(), tmp_path / "conformist.nc")


RUNS = {"n_agents": [6, 10], "runs": 5, "seed": 2}
CALLS = {
    "solve": ("--max-time 50 --times 0:2:1", {"max_time": 50.0, "times": np.arange(3.0)}),
    "fixed-points": ("", {}),
    "basins": ("--family dirichlet --starts 3 --seed 4", {"family": "dirichlet", "starts": 3, "seed": 4}),
    "bifurcation": ("--word b --spacing 0.1", {"word": "b", "spacing": 0.1}),
    "critical-mass": ("--word b --old a", {"word": "b", "old": "a"}),
    "group-size": ("-n 24,100 --level 0.9", {"n_agents": [24, 100], "level": 0.9}),
    "finite-size": ("-n 24 --times 0:2:0.5", {"n_agents": [24], "times": np.arange(0, 2.1, 0.5)}),
    "sensitivity": ("--of word_share --fixed-point 0", {"of": "word_share", "fixed_point": 0}),
    "lifetime": ("-n 24,100", {"n_agents": [24, 100]}),
    "transition-rates": ("-n 24,100", {"n_agents": [24, 100]}),
    "escape-path": ("--fixed-point 0", {"fixed_point": 0}),
    "design": (
        "--of eigenvalue --fixed-point 0 --value -0.7",
        {"of": "eigenvalue", "fixed_point": 0, "value": -0.7},
    ),
    "check": ("--least-mass 0.2", {"least_mass": 0.2}),
    "simulate": (
        "-n 6 -n 10 --runs 5 --seed 2 --committed b=1 --committed-are-extra --record-rounds 3 --record said,word_share",
        RUNS
        | {"committed": {"b": 1}, "committed_are_extra": True, "record_rounds": 3}
        | {"record": ["said", "word_share"]},
    ),
    "consensus-times": ("runs.nc --quantiles 0.1,0.5", {"simulation": "runs.nc", "quantiles": [0.1, 0.5]}),
    "committed-minority": (
        "-n 6 --word b --numbers 1:3:1 --runs 5 --seed 2",
        {"n_agents": 6, "word": "b", "numbers": [1, 2, 3], "runs": 5, "seed": 2},
    ),
    "rare-event": (
        "b -n 6 --runs 20 --seed 2 --replications 2 --committed b=1",
        {"word": "b", "n_agents": 6, "runs": 20, "seed": 2, "replications": 2, "committed": {"b": 1}},
    ),
    "collective-bias": ("-n 6:10:4 --runs 5 --seed 2", RUNS),
    "flag-game": (
        "-n 6,10 --runs 5 --seed 2 --parameters J=0.5",
        RUNS | {"parameters": replace(theory.flag_game.mechanism1.APPENDIX_E, J=0.5)},
    ),
    "fit-flag-game": (
        "counts.csv --free mean_T --starts 0 --bootstrap 0 --runs 1000",
        {"counts": "counts.csv", "free": ["mean_T"], "starts": 0, "bootstrap": 0, "runs": 1000},
    ),
}
QUICK = ("solve", "fixed-points", "critical-mass", "simulate", "check")


@pytest.mark.parametrize(
    "analysis",
    [pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.slow) for one in ANALYSES],
)
def test_a_command_calls_its_function_and_writes_what_it_returns(command, monkeypatch, tmp_path, analysis):
    typed, expected = CALLS[analysis.name]
    counts().to_csv(tmp_path / "counts.csv")
    meanfield.save(conformist(), tmp_path / "p.nc")
    if "runs.nc" in typed:
        meanfield.save(validation.simulate(conformist(), n_agents=[6, 10], runs=5, seed=2), tmp_path / "runs.nc")
    function = getattr(import_module(analysis.module), analysis.function)
    calls = []

    @wraps(function)
    def recorded(*policies, **options):
        if not calls:
            calls.append((policies, options, function(*policies, **options)))
        return calls[0][-1]

    monkeypatch.setattr(f"{analysis.module}.{analysis.function}", recorded)
    takes_policies = next(iter(analysis.signature.arguments)) in POLICY
    arguments = [analysis.name, *(["p.nc"] if takes_policies else []), *typed.split()]
    code, told, error = command(*arguments, "--out", "new/folder/o.nc")
    # This policy has two attractors, about which one command warns
    begin = "meanfield: warning: there are several" if analysis.name == "finite-size" else ""
    assert code == 0 and error.startswith(begin) and bool(error) == bool(begin)
    assert told.endswith("wrote new/folder/o.nc\n")
    ((policies, options, result),) = calls
    assert options.pop("progress", False) is False
    for name in [name for name, one in options.items() if isinstance(one, xr.Dataset)]:
        xr.testing.assert_identical(options[name], meanfield.load(expected[name]))
        options[name] = expected[name]
    np.testing.assert_equal(options, expected)
    assert all(one.equals(meanfield.load_policy("p.nc")) for one in policies) and len(policies) == takes_policies
    meanfield.save(result, "direct.nc")
    xr.testing.assert_identical(meanfield.load("new/folder/o.nc"), meanfield.load("direct.nc"))
    code, shown, error = command(*arguments)
    assert (code, error) == (0, "") and shown.strip()


def test_each_command_takes_what_the_one_before_wrote(command, tmp_path):
    """Words in brackets are no markup."""
    policy = meanfield.make_policy(random_policy(3, 2, 2, concentration=0.2)["q"].values, ["[b]x", "[/]"])
    meanfield.save(policy, "policies.nc")
    assert command("solve", "policies.nc", "--out", "solution.nc")[0] == 0
    stability = ("stability", "policies.nc", "--all-criteria", "--csv", "t.csv", "--latex", "t.tex", "--out", "t.nc")
    code, out, _ = command(*stability)
    assert code == 0 and "largest basin" in out
    assert pd.read_csv("t.csv")["row"].tolist()[:2] == ["candidate", "candidate"]
    assert r"\label{tab:stability}" in Path("t.tex").read_text(encoding="utf-8")
    code, out, _ = command("validate", "policies.nc", "-n", "10,50", "--runs", 20, "--rounds", 5, "--out", "check.nc")
    assert code == 0 and "Simulation against mean field" in out and "{[b]x, [/]}, 20 runs" in out
    assert command("figures", "solution.nc", "check.nc", "--out", "figures")[0] == 0
    assert {"solution.png", "check.png"} == {path.name for path in Path("figures").iterdir()}
    assert "word_share_[b]x" in command("fixed-points", "policies.nc")[1]


def test_the_end_of_a_solution_and_a_rare_event_are_told(command, two_attractors):
    code, out, _ = command("solve", two_attractors)
    share = meanfield.solve(conformist())["word_share"].isel(time=-1).values
    assert (code, out) == (0, f"conformist {{a, b}}: ends at a; at t = 200 a {share[0]:.3g}, b {share[1]:.3g}\n")
    options = {"n_agents": 12, "runs": 20, "seed": 1}
    code, out, _ = command("rare-event", two_attractors, "b", "-n", 12, "--runs", 20, "--seed", 1)
    rare = validation.rare_event(conformist(), "b", **options)
    low, high = rare["interval"].values
    told = f"probability {rare['probability'].item():.3g} (99 % interval {low:.3g} to {high:.3g})"
    assert code == 0 and f"N = 12: ends at b with {told}" in out


def test_runs_without_consensus_and_times_by_winner_are_told(command):
    policy = meanfield.make_policy(np.array([0.5, 0.97, 0.5, 0.5, 0.03]), ["a", "b"])
    meanfield.save(policy.drop_vars("pair"), "p.nc")
    arguments = ("-n", 4, "--runs", 200, "--max-rounds", 30, "--seed", 1, "--out", "runs.nc")
    _, out, _ = command("simulate", "p.nc", *arguments)
    none = meanfield.load("runs.nc")["consensus_word"].isnull().mean().item()
    assert 0 < none < 1 and f"no consensus {none:.3f}" in out
    sure = meanfield.make_policy(np.full((5, 2), [1.0, 0.0]), ["a", "b"])
    meanfield.save(validation.simulate(sure, n_agents=9, runs=20, seed=1), "sure.nc")
    _, out, _ = command("consensus-times", "sure.nc", "--quantiles", "0.5", "--level", "0.9")
    assert out.splitlines() == [
        "{a, b}, N = 9, a: 1.000 (0.881 to 1.000), rounds 50 % 3 (3 to 3)",
        "{a, b}, N = 9, b: 0.000 (0.000 to 0.119)",
    ]


@pytest.mark.slow
def test_a_solution_of_several_models_gives_a_figure_for_each(command, tmp_path):
    models = ["m", "a hub/n:1"]
    stack = random_policy(1).expand_dims(model=models).assign_coords(model=models)
    meanfield.save(stack, tmp_path / "two.nc")
    assert command("solve", "two.nc", "--out", "solution.nc")[0] == 0
    assert command("figures", "solution.nc", "--out", ".")[0] == 0
    assert (tmp_path / "solution_m.png").exists()
    assert (tmp_path / "solution_a hub_n_1.png").exists()


def test_published_policies_from_the_archive_to_table_s1(command, data_folder, tmp_path):
    archive = tmp_path / "some.zip"
    with ZipFile(data_folder / "llm_group_size" / "q_dicts.zip") as whole, ZipFile(archive, "w") as some:
        for name in whole.namelist():
            if "gpt-4o_ID_191_" in name or "gpt-4o_ID_102_" in name:
                some.writestr(name, whole.read(name))
    assert command("data", "llm-group-size", "--path", archive, "--out", "published.nc")[0] == 0
    select = ("--model", "gpt-4o", "--pair", "his/her")
    code, out, _ = command("stability", "published.nc", *select, "--out", "table.nc")
    assert code == 0
    assert "-0.615" in out
    code, out, _ = command("figures", "table.nc", "--out", tmp_path)
    assert code == 0
    assert "2 of 2 entries equal to the digits printed" in " ".join(out.split())
    several = ("-n", 24, "--runs", 50, "--max-rounds", 20, "--model", "gpt-4o")
    assert command("simulate", archive, *several, "--out", "runs.nc")[0] == 0
    runs = meanfield.load("runs.nc")
    assert dict(runs["consensus_word"].sizes) == {"pair": 2, "n_agents": 1, "run": 50}
    assert set(runs["consensus_word"].sel(pair="his/her").to_series().dropna()) <= {"his", "her"}


def test_forms_of_a_table(command, two_attractors, tmp_path):
    """Control: the result as the function gives it."""
    points = meanfield.fixed_points(conformist())
    arguments = ("fixed-points", two_attractors)
    command(*arguments, "-o", "t.csv")
    table = pd.read_csv("t.csv")
    np.testing.assert_array_equal(table["eigenvalue"], points["eigenvalue"])
    assert set(table["completeness"]) == {points.attrs["completeness"]} and set(table["pair"]) == {"a/b"}
    code, out, told = command(*arguments, "-o", "-", "--format", "json")
    assert (code, told) == (0, "") and pd.DataFrame(json.loads(out)).equals(table)
    assert command(*arguments, "-o", "-")[1] == (tmp_path / "t.csv").read_text(encoding="utf-8")
    command(*arguments, "-o", "t.tex")
    lines = (tmp_path / "t.tex").read_text(encoding="utf-8").splitlines()
    assert any(f"${points['eigenvalue'].values[0]:.4f}$" in line for line in lines)
    assert any(line.startswith(r"\caption{") and line.endswith(r"\label{tab:fixed-points}") for line in lines)
    assert f"{points['eigenvalue'].values[1]:.4g}" in command(*arguments)[1]


def test_a_long_table_goes_over_pages(command, two_attractors):
    code, out, _ = command("bifurcation", two_attractors, "--word", "b", "-o", "-", "--format", "tex")
    assert code == 0
    assert out.count(r"\toprule") == 2 and r"\endhead" in out and out.endswith("\\end{longtable}\n")


def test_nothing_but_the_result_is_on_stdout(command, two_attractors):
    code, out, told = command("simulate", two_attractors, "-n", 6, "--runs", 3, "-o", "-")
    assert code == 0 and len(out.splitlines()) == 4
    assert told.startswith("conformist {a, b}, N = 6: ")


@pytest.mark.slow
def test_a_pipe_of_another_code_page_takes_all_letters(tmp_path):
    """A pipe on Windows has no Greek letters, but our files have."""
    meanfield.save(meanfield.make_policy(np.full((5, 2), 0.5), ["όχι", "ναι"]), tmp_path / "greek.nc")
    code = "import sys; from meanfield import cli; sys.argv = ['meanfield', *sys.argv[1:]]; cli.main()"
    arguments = ("simulate", "greek.nc", "-n", "6", "--runs", "3", "-o", "-")
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, cwd=tmp_path, env=environment)
    assert run.returncode == 0, run.stderr.decode()
    assert "ναι" in run.stdout.decode("utf-8") and "{όχι, ναι}" in run.stderr.decode("utf-8")


@pytest.mark.skipif(os.name == "nt", reason="a shell of Windows closes no stream")
def test_a_closed_stream(tmp_path):
    """Results go to stdout all the same; a result that has nowhere to go is an error."""

    def run(command: str, closed: str) -> subprocess.CompletedProcess:
        line = f"{shlex.quote(sys.executable)} -m meanfield {command} {closed}>&-"
        return subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path)

    power = "power --kappa 0.1 -n 24 --out -"
    told, wrong, nowhere = run(power, "2"), run("other", "2"), run(power, "1")
    assert told.returncode == 0 and told.stdout.count("\n") > 1
    assert wrong.returncode == 2 and not wrong.stdout
    assert nowhere.returncode == 2
    assert nowhere.stderr == "meanfield: out = -: stdout is closed, expected a stream or the name of a file\n"


def test_a_working_folder_that_was_deleted(command, policies, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    os.chdir("gone")
    try:
        (tmp_path / "gone").rmdir()
    except OSError:
        pytest.skip("this system keeps a folder in which a process works")
    code, _, err = command("solve", policies, "--out", "solution.nc")
    assert code == 2 and "out = solution.nc: the working folder was deleted, change to another" in err
    with refused("path = solution.nc: the working folder was deleted"):
        meanfield.save(meanfield.load(policies), "solution.nc")
    assert command("solve", policies, "--out", tmp_path / "solution.nc")[0] == 0
    monkeypatch.setattr("meanfield.cli.app", lambda **_: Path.cwd())  # as libraries do when they are imported
    code, _, err = command("solve", policies)
    assert code == 1 and err.splitlines()[-1] == "meanfield: the working folder was deleted, change to another"


def test_several_policies_in_one_file(command, tmp_path):
    """Over the pairs a/b and c/d, with different numbers of fixed points."""
    both = [(3, "ab"), (5, "cd")]
    several = [meanfield.make_policy(random_policy(seed)["q"].values, list(words), model="m") for seed, words in both]
    stack = xr.concat(several, "pair", join="outer", coords="different", compat="equals")
    path = meanfield.save(stack, tmp_path / "several.nc")
    results = [meanfield.fixed_points(policy) for policy in several]
    command("fixed-points", path, "-o", "points.nc")
    joined = meanfield.load("points.nc")
    for result in results:
        place = joined.sel(pair=result["pair"].item())
        np.testing.assert_array_equal(place["eigenvalue"][: result.sizes["fixed_point"]], result["eigenvalue"])
        assert place["completeness"].item() == result.attrs["completeness"]
    command("fixed-points", path, "-o", "points.csv")
    table = pd.read_csv("points.csv")
    assert table["pair"].value_counts().to_dict() == {one["pair"].item(): one.sizes["fixed_point"] for one in results}
    shares = np.concatenate([one["word_share"].values[:, 0] for one in results])
    np.testing.assert_allclose(table["word_share_0"], shares, rtol=1e-12)
    assert set(table["word_label_0"]) == {"a", "c"}
    code, out, _ = command("fixed-points", path)
    assert code == 0 and "nan" not in out and all(name in out for name in ("a/b", "c/d", "word_share_0", "eigenvalue"))


def test_policies_of_a_file_as_one_population(command, tmp_path):
    mixed = [random_policy(seed).assign_coords(model=f"m{seed}") for seed in (1, 2)]
    path = meanfield.save(xr.concat(mixed, "model", coords="minimal", compat="override"), tmp_path / "models.nc")
    command("fixed-points", path, "--fractions", "0.3,0.7", "--committed", "a=0.1", "-o", "o.nc")
    direct = meanfield.fixed_points(meanfield.Population(mixed, fractions=[0.3, 0.7], committed={"a": 0.1}))
    np.testing.assert_array_equal(meanfield.load("o.nc")["word_share"], direct["word_share"])
    command("fixed-points", path, "--committed", "a=0.1", "--model", "m2", "-o", "o.nc")
    direct = meanfield.fixed_points(meanfield.Population(mixed[1], committed={"a": 0.1}))
    np.testing.assert_array_equal(meanfield.load("o.nc")["word_share"], direct["word_share"])
    code, _, error = command("bifurcation", path, "--word", "c")
    assert code == 2 and error.startswith("meanfield: m1 {a, b}: word = 'c': expected one of a, b (--model and --pair")
    _, _, error = command("critical-mass", path, "--model", "m2", "--word", "c")
    assert error == "meanfield: m2 {a, b}: word = 'c': expected one of a, b\n"


def test_the_memories_that_count_most_are_shown(command, policies, tmp_path):
    for population in ([], ["--committed", "a=0.1"]):
        asked = ["sensitivity", policies, "--of", "word_share", "--fixed-point", "0", *population]
        _, out, _ = command(*asked)
        command(*asked, "-o", "o.nc")
        size = abs(meanfield.load("o.nc")["derivative"]).values.ravel()
        shown = re.findall(r"^ +\d+ +(\S+) +(?:empty|\S+/)", out, re.MULTILINE)
        np.testing.assert_allclose(np.abs(np.array(shown, float)), np.sort(size)[:0:-1], rtol=1e-3)
        assert len(size) == 21


REFUSED = {
    "stability malformed.nc": "malformed.nc.q[state=2 (memory a/b)] sums to 0.9",
    "stability policies.nc --csv t.csv --out .": "out = .: expected a name that ends with .nc or .csv or .json or .tex",
    "stability policies.nc --latex text.nc/t.tex": "out = text.nc/t.tex: text.nc is no folder",
    "solve absent.nc --out o.nc": "absent.nc: there is no such file",
    "solve policies.nc --pair x/y --out o.nc": "pair = 'x/y': expected one of a/b",
    "solve policies.nc --out o.txt": "out = o.txt: expected a name that ends with .nc",
    "solve policies.nc --format txt": "format = 'txt': expected nc or csv or json or tex",
    "solve policies.nc --format nc --out o.csv": "format = 'nc': o.csv ends like a table",
    "solve log.csv": "meanfield.make_policy takes tables of probabilities, meanfield.datasets.from_events logs",
    "solve policies.nc --times 0:4:0": "times = '0:4:0': expected first:last:step",
    "solve": "Missing argument 'POLICIES'. (it needs POLICIES; meanfield solve --help",
    "rare-event policies.nc --word b": "No such option: --word (Possible options: --model) (it needs POLICIES, WORD, ",
    "basins policies.nc --committed b": "committed = 'b': expected names and numbers, as in his=0.1",
    "simulate policies.nc -n 4,x": "n_agents = 'x': expected numbers, as in 24,100,400 or 0:60:0.5",
    "simulate policies.nc -n 4 --runs x": "Invalid value for '--runs'",
    "design policies.nc --committed b=0.1": "No such option: --committed (it needs POLICIES, --of, --value; meanfield",
    "flag-game -n 4 --parameters other=1": "parameters has 'other': expected some of ",
    "validate policies.nc -n 10 --runs 1 --out o.nc": "runs = 1: expected a whole number of at least 2",
    "validate --out o.nc": "validate: expected POLICIES, --out and --n-agents, or --real-populations",
    "validate --real-populations log.csv": "log.csv: a log needs --memory-length",
    "validate --real-populations log.csv --memory-length 1 --columns said": "columns = 'said': expected names",
    "validate policies.nc -n 10 --memory-length 1 --out o.nc": "--memory-length: expected --real-populations",
    "power --kappa 0.1": "power: expected POLICIES or --kappa, and --n-agents",
    "figures policies.nc --out new": "policies.nc: expected a file from solve, stability or validate",
    "data other --out o.nc": "name = 'other': expected llm-group-size",
    "extract /absent/model --words his/her --out o.nc": "/absent/model",
    "measure SmolLM2-135M-Instruct --words his/her --goal beauty --out o.nc": "goal = 'beauty': expected one of kappa",
    "cost paid --words his/her --prompts-per-second 0": "prompts_per_second = 0.0: expected a number above 0",
    "other": "No such command 'other'.",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_wrong_input_is_one_line_and_writes_nothing(command, policies, tmp_path, arguments):
    (tmp_path / "text.nc").write_text("no NetCDF")
    (tmp_path / "log.csv").write_text("step,said\n")
    (tmp_path / "folder.nc").mkdir()
    malformed = random_policy(1).copy(deep=True)
    malformed["q"][2] = [0.4, 0.5]
    meanfield.save(malformed, tmp_path / "malformed.nc")
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, error = command(*arguments.split())
    assert (code, out) == (2, "")
    assert REFUSED[arguments] in error
    assert error.startswith("meanfield: ") and error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (meanfield.StorageError("the disk is full"), 1, "the disk is full"),
        (meanfield.ConvergenceError("no root\nfound"), 1, "no root found"),
        (KeyError("x"), 1, "KeyError: 'x' (MEANFIELD_TRACEBACK=1 shows where)"),
    ],
)
def test_other_errors_are_one_line_too(command, monkeypatch, policies, error, code, message):
    def fails(*given, **options):
        raise error

    monkeypatch.delenv("MEANFIELD_TRACEBACK")
    monkeypatch.setattr("meanfield._dynamics.solve.solve", fails)
    assert command("solve", policies) == (code, "", f"meanfield: {message}\n")


def test_a_warning_is_one_line(command, monkeypatch, two_attractors):
    points = meanfield.fixed_points(conformist())

    def warns(*given, **options):
        warnings.warn("there are\nseveral attractors", stacklevel=1)
        return points

    monkeypatch.setattr("meanfield._fixed_points.fixed_points.fixed_points", warns)
    code, out, error = command("fixed-points", two_attractors)
    assert code == 0 and "eigenvalue" in out
    assert error == "meanfield: warning: there are several attractors\n"


def test_help_imports_nothing_heavy_and_errors_reach_the_shell(tmp_path):
    heavy = ["jax", "xarray", "torch", "numpy", "pandas", "numba", "matplotlib"]
    code = f"""
import sys, meanfield.cli
for sys.argv in ["meanfield", "--help"], ["meanfield", "basins", "--help"], ["meanfield", "solve", "absent.nc"]:
    try:
        meanfield.cli.main()
    except SystemExit as end:
        code = end.code
        print([name for name in {heavy} if name in sys.modules])
sys.exit(code)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "meanfield: path = absent.nc: there is no such file\n"
    help_, of_command, control = [line for line in result.stdout.splitlines() if line.startswith("[")]
    assert help_ == of_command == "[]" and "xarray" in control


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example_that_can_be_called(command, name):
    code, out, _ = command(name, "--help")
    assert code == 0
    example = " ".join(out.split()).partition(f"Example: meanfield {name} ")[2].split()
    options = [word for word in example if word.startswith("-") and word != "-"]
    assert example and all(option in out.partition("Example:")[0] for option in options)


def test_help_tells_what_docstrings_tell(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    _, out, _ = command("critical-mass", "--help")
    assert "'committed': the fraction of all agents who are committed to `word`, which" in out, "as in `bifurcation`"
    assert "[default: committed]" in out
    assert command("--version")[1] == f"meanfield {meanfield.__version__}\n"
    code, out, error = command()
    assert (code, error) == (2, "") and all(name in out for name in COMMANDS)


def test_the_page_of_commands_lists_all_of_them():
    page = (ROOT / "docs" / "how_to" / "commands.md").read_text()
    assert set(re.findall(r"^\| `([\w-]+)`", page, re.M)) == set(COMMANDS)


def test_a_model_of_a_server_has_its_address(command):
    pytest.importorskip("openai", reason="APIs need the extra api")
    from _openai_server import FIRST_WORDS, Behaviour, KnownModel, serving

    seen = Behaviour(KnownModel.of(FIRST_WORDS), name="llama", dialect="vllm")
    options = ["llama", "--words", "his/her", "-H", "1", "--out", "policy.nc", "--exact", "--prefill", "assistant"]
    with serving(seen) as url:
        code, *_ = command("extract", *options, "--base-url", url)
    policy = meanfield.load_policy("policy.nc")
    assert code == 0 and policy.attrs["option_base_url"] == url
    assert policy.attrs["option_asked"] == "tokens of the words, vLLM 0.32.0"
    for name in ("extract", "measure"):
        code, _, errors = command(name, *options)
        assert code == 2 and "base_url = None: expected the address of a server, to which prefill, exact" in errors
    code, _, errors = command("extract", "http://127.0.0.1:1/v1", *options[1:7])
    assert code == 2 and "OpenAIBackend(name, base_url=…), or --base-url with a command" in errors


def test_a_part_of_the_prompts_is_measured(command, monkeypatch):
    found = {"prompts_used": 42, "reason": "enough", "strong_word": "", "goal_quantity": "word_share"}
    policy = random_policy(1).assign_attrs(found, goal_value=0.7, goal_low=0.65, goal_high=0.75)
    asked = create_autospec(policy_extraction.measure, return_value=policy)
    monkeypatch.setattr(policy_extraction, "measure", asked)
    options = ("--words", "his/her", "-H", 2, "--goal", "word_share", "--temperature", 1.0, "--budget", 42)
    code, out, _ = command("measure", "table", *options, "--out", "policy.nc")
    told = ["wrote policy.nc: 42 prompts; enough", "word_share 0.7, 0.65 to 0.75", "strong word: not known"]
    assert (code, out.splitlines()) == (0, told) and meanfield.load_policy("policy.nc").equals(policy)
    expected = {"words": ("his", "her"), "memory_length": 2, "goal": "word_share", "temperature": 1.0, "budget": 42}
    assert {name: asked.call_args.kwargs[name] for name in expected} == expected


def test_costs_are_told_before_anything_is_sent(command, monkeypatch):
    def absent(model):
        raise meanfield.InputError(f"model = {model}: not there")

    monkeypatch.setattr("policy_extraction.measuring._cost.find", absent)
    games = ("--words", "his/her", "--words", "woman/man")
    code, out, _ = command("cost", "paid", *games, "-H", 1)
    assert code == 0 and out.count("\n") == 1
    assert out.startswith("20 prompts, 20 requests, ") and "estimated" in out and "paid: not there" in out
    prices = ("--input-price", 2.5, "--output-price", 1e6, "--answer-tokens", 12, "--prompts-per-second", 4)
    code, out, _ = command("cost", "paid", *games, "-H", 1, *prices)
    _, price, seconds = out.splitlines()
    assert price == "240.02 in the currency of the prices" and seconds == "0:00:05 hours"


def test_power_is_told_and_written(command, tmp_path):
    code, out, _ = command("power", "--kappa", "0.09", "-n", "24,100", "--runs", "10,40", "--out", "table.csv")
    table = pd.read_csv(tmp_path / "table.csv", keep_default_na=False)
    expected = validation.populations.power(0.09, n_agents=[24, 100], runs=[10, 40])
    assert code == 0 and out.splitlines() == [*validation.populations.report(expected), "wrote table.csv"]
    assert table["power"].tolist() == expected["power"].tolist()
    meanfield.save(conformist(), tmp_path / "conformist.nc")
    _, out, _ = command("power", "conformist.nc", "-n", 24)
    law = validation.populations.power(conformist(), n_agents=24)
    assert out.splitlines() == validation.populations.report(law)


def test_a_log_and_a_folder_are_held_against_theory(command, monkeypatch, tmp_path):
    pairs = [(1, 2), (2, 3), (3, 1), (2, 1)]
    rows = [(step, *pairs[step % 4], "AAB"[step % 3], "B") for step in range(60)]
    log = pd.DataFrame(rows, columns=["step", "agent", "partner", "answer", "heard"])
    log.assign(step=log["step"] / 2).to_csv("log.csv", index=False, sep=";", decimal=",")
    real = meanfield.datasets.from_events(log, memory_length=2, columns={"said": "answer", "run": None})
    expected = validation.populations.validate(real, draws=2, runs=10)
    monkeypatch.setattr(validation.populations, "validate", partial(validation.populations.validate, draws=2))
    line = "validate --real-populations log.csv --memory-length 2 --columns said=answer,run=None --sep ; --decimal ,"
    assert command(*line.split(), "--runs", 10, "--out", "table.csv")[0] == 0
    told = pd.read_csv("table.csv", keep_default_na=False)
    assert told["verdict"].tolist() == expected["verdict"].tolist()
    real = populations()
    real.choice_counts.to_csv("choice_counts.csv.gz", index=False)
    real.runs.to_csv("runs.csv", index=False)
    code, out, _ = command("validate", "--real-populations", tmp_path, "--runs", 10, "--out", "table.csv")
    assert code == 0 and "m {A, B}, from_empty" in out
    assert out.strip().splitlines()[-1].startswith("summary: ") and len(pd.read_csv("table.csv")) > 5


def test_small_gains_keep_their_digits(capsys):
    row = {"model": "m", "pair": "A/B", "memory_length": 1, "law": "policy", "log_likelihood": -0.5}
    other = row | {"law": "share", "gain": -0.00012, "gain_low": -0.0, "gain_high": 0.0345}
    _populations._say_scores(pd.DataFrame([row, other]))
    assert "gain -0.00012 (0 to 0.035)" in capsys.readouterr().out
