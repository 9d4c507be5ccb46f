"""The `meanfield` command as a person runs it: files from step to step, and errors of one line."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import meanfield
from conftest import random_policy
from meanfield import cli
from test_real_populations import populations


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run `meanfield` with arguments in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["meanfield", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def policies(tmp_path):
    return meanfield.save(random_policy(3, 2, 2, concentration=0.2), tmp_path / "policies.nc")


def test_each_command_takes_what_the_one_before_wrote(command, policies, tmp_path):
    assert command("solve", policies, "--out", "solution.nc")[0] == 0
    assert command("stability", policies, "--csv", "table.csv", "--out", "table.nc")[0] == 0
    assert command("simulate", policies, "-n", 10, "--runs", 20, "--out", "runs.nc")[0] == 0
    code, out, _ = command("validate", policies, "-n", 10, "-n", 50, "--runs", 20, "--rounds", 5, "--out", "check.nc")
    assert code == 0
    assert "Simulation against mean field" in out
    assert command("figures", "solution.nc", "check.nc", "--out", tmp_path)[0] == 0
    assert {"solution.png", "check.png"} <= {path.name for path in tmp_path.iterdir()}
    assert meanfield.load("runs.nc")["consensus_word"].shape == (1, 20)
    assert pd.read_csv("table.csv")["row"].tolist()[:2] == ["candidate", "candidate"]


def test_simulation_says_how_many_runs_found_no_consensus(command, tmp_path):
    policy = meanfield.make_policy(np.array([0.5, 0.97, 0.5, 0.5, 0.03]), ["a", "b"])
    meanfield.save(policy.drop_vars("pair"), tmp_path / "p.nc")
    arguments = ("-n", 4, "--runs", 200, "--max-rounds", 30, "--seed", 1, "--out", "runs.nc")
    code, out, _ = command("simulate", "p.nc", *arguments)
    assert code == 0
    runs = meanfield.load("runs.nc")["consensus_word"]
    assert 0 < runs.isnull().mean() < 1
    assert f"no consensus {runs.isnull().mean().item():.3f}" in out


def test_many_rounds_and_long_names(command, policies, tmp_path):
    long = tmp_path / ("x" * 60 + "[red]")
    long.mkdir()
    sizes = ("-n", 10, "--runs", 5, "--max-rounds", 150, "--rounds", 150)
    code, out, _ = command("validate", policies, *sizes, "--out", long / "check.nc")
    assert code == 0
    assert f"wrote {long / 'check.nc'}" in out


def test_a_solution_of_several_models_gives_a_figure_for_each(command, tmp_path):
    stack = random_policy(1).expand_dims(model=["m", "n"]).assign_coords(model=["m", "n"])
    meanfield.save(stack, tmp_path / "two.nc")
    assert command("solve", "two.nc", "--out", "solution.nc")[0] == 0
    assert command("figures", "solution.nc", "--out", ".")[0] == 0
    assert (tmp_path / "solution_m.png").exists()
    assert (tmp_path / "solution_n.png").exists()


def test_published_policies_from_the_archive_to_table_s1(command, data_folder, tmp_path):
    assert command("data", "llm-group-size", "--path", data_folder, "--out", "published.nc")[0] == 0
    select = ("--model", "gpt-4o", "--pair", "his/her")
    code, out, _ = command("stability", "published.nc", *select, "--out", "table.nc")
    assert code == 0
    assert "-0.615" in out
    code, out, _ = command("figures", "table.nc", "--out", tmp_path)
    assert code == 0
    assert "2 of 2 entries equal to the digits printed" in " ".join(out.split())
    several = ("-n", 24, "--runs", 50, "--max-rounds", 20, "--model", "gpt-4o")
    archive = data_folder / "llm_group_size" / "q_dicts.zip"
    assert command("simulate", archive, *several, "--out", "runs.nc")[0] == 0
    runs = meanfield.load("runs.nc")
    assert dict(runs["consensus_word"].sizes) == {"pair": 11, "n_agents": 1, "run": 50}
    assert set(runs["consensus_word"].sel(pair="his/her").to_series().dropna()) <= {"his", "her"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stability", "malformed.nc"), "malformed.nc.q[state=2] sums to 0.9"),
        (("stability", "text.nc"), "text.nc: expected a NetCDF file"),
        (("solve", "absent.nc", "--out", "o.nc"), "absent.nc: there is no such file"),
        (("solve", "policies.nc", "--pair", "x/y", "--out", "o.nc"), "pair = 'x/y': expected one of a/b"),
        (("solve", "policies.nc", "--model", "m", "--out", "o.nc"), "model = 'm': expected one of random"),
        (("solve", "policies.nc", "--out", "absent/o.nc"), "the folder absent does not exist"),
        (("simulate", "policies.nc", "-n", "1", "--out", "o.nc"), "n_agents = 1: expected"),
        (("validate", "policies.nc", "-n", "10", "--runs", "1", "--out", "o.nc"), "runs = 1: expected at least 2"),
        (
            ("validate", "policies.nc", "-n", "10", "--rounds", "0", "--out", "o.nc"),
            "rounds = 0: expected 1 to max_rounds",
        ),
        (("validate", "--out", "o.nc"), "validate: expected POLICIES, --out and --n-agents, or --real-populations"),
        (("validate", "policies.nc", "--real-populations", "."), "expected no POLICIES and no -n"),
        (("validate", "--real-populations", "absent"), "absent"),
        (("stability", "policies.nc", "--csv", "t.csv", "--out", "."), "it is a folder"),
        (("stability", "policies.nc", "--latex", "absent/t.tex"), "the folder absent does not exist"),
        (("figures", "policies.nc", "--out", "."), "policies.nc: expected what solve, stability or validate wrote"),
        (("figures", "policies.nc", "--out", "absent"), "out = absent: there is no such folder"),
        (("data", "other", "--out", "o.nc"), "name = 'other': expected llm-group-size"),
        (("extract", "/absent/model", "--words", "his/her", "--out", "o.nc"), "/absent/model"),
        (("extract", "SmolLM2-135M-Instruct", "--words", "his", "--out", "o.nc"), "words = 'his'"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(command, policies, tmp_path, arguments, message):
    (tmp_path / "text.nc").write_text("no NetCDF")
    malformed = random_policy(1).copy(deep=True)
    malformed["q"][2] = [0.4, 0.5]
    meanfield.save(malformed, tmp_path / "malformed.nc")
    before = sorted(path.name for path in tmp_path.iterdir())
    code, _, error = command(*arguments)
    assert code == 2
    assert message in error
    assert error.strip().count("\n") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_errors_reach_the_shell(tmp_path):
    command = [sys.executable, "-m", "meanfield", "solve", "absent.nc", "--out", "o.nc"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "meanfield: path = absent.nc: there is no such file\n"


@pytest.mark.parametrize("name", ["data", "extract", "solve", "stability", "simulate", "validate", "figures", "demo"])
def test_help_shows_an_example(command, name):
    code, out, _ = command(name, "--help")
    assert code == 0
    assert f"Example: meanfield {name}" in " ".join(out.split())


def test_probabilities_come_through_files_unchanged(command, policies):
    recording = ["--record-rounds", 3, "--record", "said", "--record", "success_rate"]
    command("simulate", policies, "-n", 12, "--runs", 30, "--seed", 5, *recording, "--out", "runs.nc")
    from validation import simulate

    options = {"record_rounds": 3, "record": ["said", "success_rate"]}
    direct = simulate(meanfield.load_policy(policies), n_agents=12, runs=30, seed=5, **options)
    for name in ("consensus_round", *options["record"]):
        np.testing.assert_array_equal(meanfield.load("runs.nc")[name], direct[name])


def test_real_populations_end_with_a_summary(command, tmp_path):
    real = populations()
    real.choice_counts.to_csv(tmp_path / "choice_counts.csv.gz", index=False)
    real.runs.to_csv(tmp_path / "runs.csv", index=False)
    code, out, _ = command("validate", "--real-populations", tmp_path, "--runs", 40, "--out", "table.csv")
    assert code == 0
    assert out.strip().splitlines()[-1].startswith("summary: ")
    assert "m {A, B}, from_empty" in out
    assert len(pd.read_csv(tmp_path / "table.csv")) > 5


def test_latex_and_all_criteria(command, policies, tmp_path):
    code, out, _ = command("stability", policies, "--all-criteria", "--latex", "table.tex")
    assert code == 0
    assert "largest basin" in out
    assert (tmp_path / "table.tex").read_text().startswith(r"\begin{tabular}")
