"""The `meanfield` command: each step of the chain, from files to files.

The one place that knows all rooms; every command imports what it needs when it runs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import xarray as xr
from rich.console import Console

import meanfield
from meanfield import InputError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich", help=__doc__)
console = Console()

PolicyFile = Annotated[
    Path, typer.Argument(metavar="POLICIES", help="Policies as NetCDF, or the published q_dicts.zip.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write.")]
Model = Annotated[str | None, typer.Option(help="Take this model of the file only.")]
Pair = Annotated[str | None, typer.Option(help="Take this word pair of the file only, as first/second.")]
Sizes = Annotated[list[int], typer.Option("--n-agents", "-n", help="Population size N; may be given several times.")]
Runs = Annotated[int, typer.Option(help="Simulated runs of each population size.")]
Seed = Annotated[int, typer.Option(help="Seed; equal seeds give equal runs.")]
MaxRounds = Annotated[int, typer.Option(help="Rounds after which a run ends without consensus.")]


def main() -> None:
    """Run the command; a wrong input is one line on stderr and exit code 2, an unknown option a note of typer's."""
    try:
        app()
    except InputError as error:
        sys.exit(_fail(f"{error}", 2))
    except OSError as error:
        sys.exit(_fail(f"{error}", 1))


def _fail(message: str, code: int) -> int:
    print(f"meanfield: {' '.join(message.split())}", file=sys.stderr)
    return code


@app.command(epilog="Example: meanfield data llm-group-size --out published.nc")
def data(
    name: Annotated[
        str,
        typer.Argument(help="llm-group-size, the published policies of four language models, or smollm2, our own."),
    ],
    out: Out,
    path: Annotated[Path | None, typer.Option(help="Where q_dicts.zip is, if it is on this machine.")] = None,
) -> None:
    """Fetch published policies, or take those that come with the package, and write them as NetCDF."""
    if name not in ("llm-group-size", "smollm2"):
        raise InputError(f"name = {name!r}: expected llm-group-size or smollm2")
    if name == "smollm2" and path is not None:
        raise InputError(f"path = {path}: smollm2 comes with the package and has no other file")
    _check_out(out)
    policies = meanfield.datasets.smollm2() if name == "smollm2" else meanfield.datasets.llm_group_size(path)
    models = np.unique(policies["model"].values)
    _saved(policies, out, f"{', '.join(models)}: {policies.sizes['pair']} word pairs")


@app.command(
    epilog="Example: meanfield extract SmolLM2-135M-Instruct --words his/her --memory-length 3 --out policies.nc"
)
def extract(
    model: Annotated[str, typer.Argument(help="Hugging Face name, local path, or SmolLM2-135M-Instruct.")],
    words: Annotated[list[str], typer.Option(help="Word pair as first/second; may be given several times.")],
    out: Out,
    memory_length: Annotated[int, typer.Option("--memory-length", "-H", help="H, interactions remembered.")] = 5,
    temperature: Annotated[float, typer.Option(help="Sampling temperature of the agents.")] = 0.5,
    gguf_file: Annotated[str | None, typer.Option(help="GGUF file inside the model's folder.")] = None,
) -> None:
    """Measure the policy of a language model: its next-token probabilities in every memory state."""
    from policy_extraction import check_policy, policy_warnings
    from policy_extraction import extract as extract_policy

    _check_out(out)
    policies = extract_policy(
        model,
        words=[_pair(pair) for pair in words],
        memory_length=memory_length,
        temperature=temperature,
        gguf_file=gguf_file,
        progress=sys.stderr.isatty(),
    )
    _saved(policies, out, _captured(policies))
    for warning in policy_warnings(check_policy(policies)):
        _say(warning)


@app.command(epilog="Example: meanfield solve published.nc --model gpt-4o --out solution.nc")
def solve(policies: PolicyFile, out: Out, model: Model = None, pair: Pair = None) -> None:
    """Integrate the rate equation from empty memories."""
    _check_out(out)
    selected = _select(_policies(policies), model, pair)
    with console.status("integrating the rate equation"):
        solution = meanfield.solve(selected)
    for one in meanfield.each_policy(selected):
        place = {dim: one[dim].item() for dim in solution["attractor"].dims}
        end = solution.sel(place)
        note = "" if end["steady"] else f" (not steady: still moving at t = {end['end_time'].item():g})"
        _say(f"{meanfield.name_of(one)}: {end['attractor'].item()}{note}")
    _saved(solution, out)


@app.command(epilog="Example: meanfield stability published.nc --csv stability.csv")
def stability(
    policies: Annotated[list[Path], typer.Argument(metavar="POLICIES…", help="NetCDF files, or q_dicts.zip.")],
    csv: Annotated[Path | None, typer.Option(help="Write the table as CSV.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the table for LaTeX (booktabs).")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table as NetCDF.")] = None,
    model: Model = None,
    pair: Pair = None,
    all_criteria: Annotated[bool, typer.Option("--all-criteria", help="The strong word by basin and κ too.")] = False,
) -> None:
    """Candidates, true fixed points and leading eigenvalues: the stability table."""
    _check_out(csv, latex, out)
    stacks = [_select(_policies(path), model, pair) for path in policies]
    criteria = meanfield.CRITERIA if all_criteria else meanfield.CRITERIA[:1]
    table = meanfield.stability_table(stacks, criteria=criteria, progress=sys.stderr.isatty())
    console.print(meanfield.stability_report(table))
    if latex is not None:
        meanfield.write_stability_latex(table, latex)
        _say(f"wrote {latex}")
    if csv is not None:
        meanfield.write_stability_csv(table, csv)
        _say(f"wrote {csv}")
    if out is not None:
        _saved(table, out)


@app.command(epilog="Example: meanfield simulate published.nc --model gpt-4o --pair his/her -n 24 --out runs.nc")
def simulate(
    policies: PolicyFile,
    out: Out,
    n_agents: Sizes,
    model: Model = None,
    pair: Pair = None,
    runs: Runs = 1000,
    seed: Seed = 0,
    max_rounds: MaxRounds = 1000,
    record_rounds: Annotated[int | None, typer.Option(help="Record the word shares of this many rounds.")] = None,
) -> None:
    """Simulate finite populations agent by agent, from empty memories."""
    from validation import simulate as simulate_runs

    _check_out(out)
    results = [
        simulate_runs(
            policy,
            n_agents=n_agents,
            runs=runs,
            seed=seed,
            max_rounds=max_rounds,
            record_rounds=record_rounds,
            progress=sys.stderr.isatty(),
        )
        for policy in _one_model(_select(_policies(policies), model, pair))
    ]
    for result in results:
        for size in result["n_agents"].values:
            ended = result["consensus_word"].sel(n_agents=size)
            shares = {word: (ended == word).mean().item() for word in meanfield.words_of(result)}
            shares["no consensus"] = ended.isnull().mean().item()
            listed = ", ".join(f"{outcome} {share:.3f}" for outcome, share in shares.items())
            _say(f"{meanfield.name_of(result)}, N = {size:,}: {listed}")
    _saved(_over_pairs(results), out)


@app.command(
    epilog="Example: meanfield validate published.nc --model gpt-4o --pair his/her -n 24 -n 2000 --out check.nc"
)
def validate(
    policies: Annotated[
        Path | None, typer.Argument(metavar="POLICIES", help="Policies as NetCDF, or the published q_dicts.zip.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write (CSV for --real-populations).")] = None,
    n_agents: Annotated[
        list[int] | None, typer.Option("--n-agents", "-n", help="Population size N; may be given several times.")
    ] = None,
    model: Model = None,
    pair: Pair = None,
    runs: Annotated[int | None, typer.Option(help="Simulated runs of each size (400) or policy drawn (100).")] = None,
    seed: Seed = 0,
    max_rounds: MaxRounds = 1000,
    rounds: Annotated[int, typer.Option(help="Rounds over which the word shares are compared.")] = 30,
    real_populations: Annotated[
        Path | None,
        typer.Option(help="Folder with choice_counts.csv.gz and runs.csv of populations that were really run."),
    ] = None,
) -> None:
    """Check the theory against simulation, or with --real-populations policies against populations that were run."""
    _check_out(out)
    if real_populations is not None:
        if policies is not None or n_agents:
            raise InputError("--real-populations estimates policies from the folder: expected no POLICIES and no -n")
        _validate_real(real_populations, out, 100 if runs is None else runs, seed)
        return
    if policies is None or out is None or not n_agents:
        raise InputError("validate: expected POLICIES, --out and --n-agents, or --real-populations FOLDER")
    chosen = _one_model(_select(_policies(policies), model, pair))
    _saved(_validate(chosen, n_agents, 400 if runs is None else runs, seed, max_rounds, rounds), out)


@app.command(epilog="Example: meanfield figures solution.nc check.nc --out results")
def figures(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS…", help="What solve, stability or validate wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write into.")],
) -> None:
    """Draw results as in the papers: a figure or table for each file, named after it."""
    from paper_figs import mean_field_dynamics, table_s1, theory_and_simulation

    makers = {
        "solution": (mean_field_dynamics.draw, ".png"),
        "comparison": (theory_and_simulation.draw, ".png"),
        "stability_table": (table_s1.draw, "_against_paper.csv"),
    }
    if not out.is_dir():
        raise InputError(f"out = {out}: there is no such folder")
    loaded = {path: meanfield.load(path) for path in results}
    for path, result in loaded.items():
        if result.attrs.get("kind") not in makers:
            raise InputError(f"{path}: expected what solve, stability or validate wrote")
    with tempfile.TemporaryDirectory(dir=out) as folder:
        drawn = []
        for path, result in loaded.items():
            draw, ending = makers[result.attrs["kind"]]
            for name, one in _by_model(path.stem, result):
                drawn.append(draw(one, Path(folder) / f"{name}{ending}"))
        for path in drawn:
            _say(f"wrote {path.replace(out / path.name)}")


@app.command(epilog="Example: meanfield demo --out results")
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write into; made if it is not there.")] = Path(
        "results"
    ),
) -> None:
    """The whole chain on the embedded SmolLM2: extract, solve, check against simulation, draw, explain."""
    from paper_figs import mean_field_dynamics, theory_and_simulation
    from policy_extraction import SMOLLM2
    from policy_extraction import extract as extract_policy

    out.mkdir(parents=True, exist_ok=True)
    console.rule("1. policies: what SmolLM2-135M says in every memory of up to three rounds")
    pairs = [("his", "her"), ("woman", "man"), ("Mexican", "American")]
    policies = extract_policy(SMOLLM2, words=pairs, memory_length=3, progress=sys.stderr.isatty())
    _saved(policies, out / "policies.nc", _captured(policies))
    console.rule("2. theory: fixed points and their stability")
    table = meanfield.stability_table(policies, progress=sys.stderr.isatty())
    console.print(meanfield.stability_report(table))
    _saved(table, out / "stability.nc")
    solution = meanfield.solve(policies)
    _saved(solution, out / "mean_field_dynamics.nc")
    console.rule("3. check: exact simulation of 24, 200 and 2,000 agents")
    comparison = _validate(list(meanfield.each_policy(policies)), [24, 200, 2000], 400, 1, 300, 30)
    _saved(comparison, out / "theory_and_simulation.nc")
    drawn = [
        mean_field_dynamics.draw(solution, out / "mean_field_dynamics.png"),
        theory_and_simulation.draw(comparison, out / "theory_and_simulation.png"),
    ]
    console.rule("What it means")
    for sentence in meanfield.describe_stability(table):
        _say(sentence)
    _say(f"The model was unsure of the task: {_captured(policies)}.")
    written = [*sorted(path.name for path in out.glob("*.nc")), *(path.name for path in drawn)]
    _say(f"Files in {out}: {', '.join(written)}.")


def _validate(
    policies: list[xr.Dataset], n_agents: list[int], runs: int, seed: int, max_rounds: int, rounds: int
) -> xr.Dataset:
    from validation import compare, comparison_table
    from validation import simulate as simulate_runs

    if runs < 2:
        raise InputError(f"runs = {runs}: expected at least 2, for a standard error")
    if not 1 <= rounds <= max_rounds:
        raise InputError(f"rounds = {rounds}: expected 1 to max_rounds = {max_rounds}")
    times = np.linspace(0, meanfield.TIME_PER_ROUND * rounds, 4 * rounds + 1)
    comparisons = []
    for policy in policies:
        solution = meanfield.solve(policy, times=times, max_time=max(2000.0, times[-1]))
        simulation = simulate_runs(
            policy,
            n_agents=n_agents,
            runs=runs,
            seed=seed,
            max_rounds=max_rounds,
            record_rounds=rounds,
            progress=sys.stderr.isatty(),
        )
        comparisons.append(compare(solution, simulation))
        console.print(comparison_table(comparisons[-1]))
    return _over_pairs(comparisons)


def _validate_real(folder: Path, out: Path | None, runs: int, seed: int) -> None:
    from validation import real_populations_report, validate_real_populations

    table = validate_real_populations(folder, runs=runs, seed=seed, progress=sys.stderr.isatty())
    for line in real_populations_report(table)[:-1]:
        _say(line)
    if out is not None:
        table.to_csv(out, index=False)
        _say(f"wrote {out}")
    _say(real_populations_report(table)[-1])


def _policies(path: Path) -> xr.Dataset:
    return meanfield.datasets.llm_group_size(path) if path.suffix == ".zip" else meanfield.load_policy(path)


def _select(policies: xr.Dataset, model: str | None, pair: str | None) -> xr.Dataset:
    for dim, label in (("model", model), ("pair", pair)):
        if label is None:
            continue
        known = [str(value) for value in policies[dim].values.ravel()] if dim in policies.coords else []
        if label not in known:
            raise InputError(
                f"{dim} = {label!r}: expected one of {', '.join(known) or 'none, the file names no ' + dim}"
            )
        policies = policies.sel({dim: label}) if dim in policies.dims else policies
    return policies


def _one_model(policies: xr.Dataset) -> list[xr.Dataset]:
    if policies.sizes.get("model", 1) > 1:
        raise InputError(f"the file has the models {', '.join(policies['model'].values)}: choose one with --model")
    return list(meanfield.each_policy(policies))


def _over_pairs(results: list[xr.Dataset]) -> xr.Dataset:
    """One Dataset; over the dim `pair` where there are several."""
    if len(results) == 1:
        return results[0]
    return xr.concat(
        results, "pair", data_vars="different", coords="different", compat="equals", combine_attrs="drop_conflicts"
    )


def _pair(text: str) -> tuple[str, ...]:
    words = tuple(text.split("/"))
    if len(words) < 2 or not all(words):
        raise InputError(f"words = {text!r}: expected words with a slash between them, as in his/her")
    return words


def _by_model(name: str, result: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """The result by model with a name for each, for figures of one model."""
    if "model" not in result.dims:
        return [(name, result)]
    return [(f"{name}_{model}", result.sel(model=model)) for model in result["model"].values]


def _check_out(*paths: Path | None) -> None:
    """Long work starts only when its results can be written."""
    for path in paths:
        if path is not None:
            meanfield.check_writable(path)


def _captured(policies: xr.Dataset) -> str:
    mass = policies["captured_mass"]
    return f"the words hold {float(mass.min()):.1%} to {float(mass.max()):.1%} of the next-token probability"


def _saved(result: xr.Dataset, path: Path, note: str = "") -> None:
    meanfield.save(result, path)
    _say(f"wrote {path}" + (f": {note}" if note else ""))


def _say(text: str) -> None:
    """One line, however long, and no markup: paths and words are shown as they are."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
