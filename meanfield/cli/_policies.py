"""Commands that make policies and their stability table: data, extract, measure, cost, stability."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meanfield import InputError
from meanfield.cli._common import DATASETS, POLICIES, Model, Pair, Seed, app, captured, read_policies
from meanfield.cli._output import DATASET, Form, Out, Output, Result, console, say

if TYPE_CHECKING:
    import xarray as xr

BaseUrl = Annotated[
    str | None,
    typer.Option(help="Address of a server, as in http://127.0.0.1:8000/v1, with the model of this name."),
]
Prefill = Annotated[
    str | None,
    typer.Option(help="With a server, how an answer begins: none, assistant, user or text."),
]
TopLogprobs = Annotated[int | None, typer.Option(help="With a server, tokens to list at each position.")]
Exact = Annotated[bool, typer.Option("--exact", help="With a server, ask for exactly the tokens of the words.")]


@app.command(epilog="Example: meanfield data llm-group-size --out published.nc")
def data(
    name: Annotated[
        str,
        typer.Argument(help="llm-group-size, the published policies of four language models, or smollm2, our own."),
    ],
    out: Out,
    path: Annotated[Path | None, typer.Option(help="Where q_dicts.zip is, if it is on this machine.")] = None,
) -> None:
    """Fetch published policies, or copy the package's, and write them as NetCDF."""
    if name not in DATASETS:
        raise InputError(f"name = {name!r}: expected {' or '.join(DATASETS)}")
    if name == "smollm2" and path is not None:
        raise InputError(f"path = {path}: smollm2 comes with the package and has no other file")
    output = Output(out, forms=DATASET)
    import numpy as np

    from meanfield import datasets

    policies = datasets.smollm2() if name == "smollm2" else datasets.llm_group_size(path)
    models = np.unique(policies["model"].values)
    output.write(policies, note=f"{', '.join(models)}: {policies.sizes['pair']} word pairs")


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
    base_url: BaseUrl = None,
    prefill: Prefill = None,
    top_logprobs: TopLogprobs = None,
    exact: Exact = False,
) -> None:
    """Measure the policy of a language model: its next-token probabilities in every memory state."""
    output = Output(out, forms=DATASET)
    pairs = [_pair(pair) for pair in words]
    from policy_extraction import check_policy, policy_warnings
    from policy_extraction import extract as extract_policy

    policies = extract_policy(
        _asked(model, base_url, prefill=prefill, top_logprobs=top_logprobs, exact=exact),
        words=pairs,
        memory_length=memory_length,
        temperature=temperature,
        gguf_file=gguf_file,
        progress=sys.stderr.isatty(),
    )
    output.write(policies, note=captured(policies))
    for warning in policy_warnings(check_policy(policies)):
        say(warning)


@app.command(
    epilog="Example: meanfield measure SmolLM2-135M-Instruct --words his/her --memory-length 3 --budget 120 "
    "--out policy.nc"
)
def measure(
    model: Annotated[str, typer.Argument(help="As for `extract`.")],
    words: Annotated[str, typer.Option(help="Word pair as first/second.")],
    out: Out,
    memory_length: Annotated[int, typer.Option("--memory-length", "-H", help="H, interactions remembered.")] = 5,
    goal: Annotated[
        str, typer.Option(help="The quantity to measure: kappa, strong word, eigenvalue, critical_mass or word_share.")
    ] = "kappa",
    word: Annotated[str | None, typer.Option(help="Word of the committed agents, for critical_mass.")] = None,
    tolerance: Annotated[
        float, typer.Option(help="Half the width of the goal's 95 % interval at the end, relative to its value.")
    ] = 0.05,
    budget: Annotated[int | None, typer.Option(help="Largest number of prompts; without it as many as needed.")] = None,
    temperature: Annotated[float, typer.Option(help="Sampling temperature of the agents.")] = 0.5,
    seed: Seed = 0,
    base_url: BaseUrl = None,
    prefill: Prefill = None,
    top_logprobs: TopLogprobs = None,
    exact: Exact = False,
) -> None:
    """Measure the policy of a language model with a part of its prompts, chosen to tell a collective quantity."""
    output = Output(out, forms=DATASET)
    pair = _pair(words)
    from policy_extraction import measure as measure_policy

    policy = measure_policy(
        _asked(model, base_url, prefill=prefill, top_logprobs=top_logprobs, exact=exact),
        words=pair,
        memory_length=memory_length,
        goal=goal,
        word=word,
        tolerance=tolerance,
        budget=budget,
        temperature=temperature,
        seed=seed,
        progress=sys.stderr.isatty(),
    )
    known = policy.attrs
    output.write(policy, note=f"{known['prompts_used']:,} prompts; {known['reason']}")
    if known["goal_quantity"]:
        say(f"{known['goal_quantity']} {known['goal_value']:.4g}, {known['goal_low']:.4g} to {known['goal_high']:.4g}")
    say(f"strong word: {known['strong_word'] or 'not known'}")


@app.command(
    epilog="Example: meanfield cost gpt-4o-2024-08-06 --words his/her --input-price 2.5 --output-price 10 "
    "--answer-tokens 12 --requests-per-minute 500"
)
def cost(
    model: Annotated[str, typer.Argument(help="As for `extract`; tokens are estimated for any other name.")],
    words: Annotated[list[str], typer.Option(help="Word pair as first/second; may be given several times.")],
    memory_length: Annotated[int, typer.Option("--memory-length", "-H", help="H, interactions remembered.")] = 5,
    budget: Annotated[int | None, typer.Option(help="Prompts that `measure` may ask. Default: all of them.")] = None,
    answer_tokens: Annotated[int, typer.Option(help="Tokens that a request writes.")] = 1,
    input_price: Annotated[float | None, typer.Option(help="Price of a million tokens read.")] = None,
    output_price: Annotated[float | None, typer.Option(help="Price of a million tokens written.")] = None,
    requests_per_minute: Annotated[float | None, typer.Option(help="Limit of requests a minute.")] = None,
    tokens_per_minute: Annotated[float | None, typer.Option(help="Limit of tokens a minute, read and written.")] = None,
    prompts_per_second: Annotated[float | None, typer.Option(help="Measured rate.")] = None,
) -> None:
    """Prompts, tokens, price and time of a measurement by `extract` or `measure`; no prompt is sent."""
    pairs = [_pair(pair) for pair in words]
    from policy_extraction import Limits
    from policy_extraction import cost as cost_of

    limits = Limits(requests_per_minute, tokens_per_minute, None, input_price, output_price)
    found = cost_of(
        model,
        words=pairs,
        memory_length=memory_length,
        budget=budget,
        answer_tokens=answer_tokens,
        limits=limits,
        prompts_per_second=prompts_per_second,
    )
    total = found.sum("pair", skipna=False)
    say(
        f"{total['prompts']:,} prompts, {total['requests']:,} requests, {total['tokens_in']:,} tokens to read and "
        f"{total['tokens_out']:,} to write ({found.attrs['counted']})"
    )
    if not total["price"].isnull():
        say(f"{total['price']:.2f} in the currency of the prices")
    if not total["seconds"].isnull():
        say(f"{timedelta(seconds=round(total['seconds'].item()))} hours")


@app.command(epilog="Example: meanfield stability published.nc --out stability.tex")
def stability(
    policies: Annotated[list[str], typer.Argument(metavar="POLICIES…", help=POLICIES)],
    csv: Annotated[Path | None, typer.Option(help="Write the table as CSV.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the table for LaTeX (booktabs).")] = None,
    out: Result = None,
    form: Form = None,
    model: Model = None,
    pair: Pair = None,
    all_criteria: Annotated[bool, typer.Option("--all-criteria", help="The strong word by basin and κ too.")] = False,
) -> None:
    """Candidates, true fixed points and leading eigenvalues: the stability table."""
    outputs = [Output(latex, "tex"), Output(csv, "csv"), Output(out, form)]
    import meanfield
    from meanfield.toolbox import CRITERIA

    stacks = [read_policies(path, model, pair) for path in policies]
    criteria = CRITERIA if all_criteria else CRITERIA[:1]
    table = meanfield.stability_table(stacks, criteria=criteria, progress=sys.stderr.isatty())
    console.print(meanfield.stability_report(table))
    for output in outputs:
        output.write(table, lambda form: _stability_text(table, form))


def _stability_text(table: xr.Dataset, form: str) -> str:
    from meanfield._tables.result_table import table_text
    from meanfield._tables.stability_files import stability_frame, stability_latex

    return stability_latex(table) if form == "tex" else table_text(stability_frame(table), form)


def _asked(model: str, base_url: str | None, **options: Any) -> Any:
    """The model, of a server if there is an address; its key is in OPENAI_API_KEY."""
    given = {name: value for name, value in options.items() if value not in (None, False)}
    if base_url is not None and not base_url.strip():
        raise InputError(f"base_url = {base_url!r}: expected the address of a server")
    if base_url is None:
        if given:
            raise InputError(f"base_url = None: expected the address of a server, to which {', '.join(given)} belongs")
        return model
    from policy_extraction.backends.api import OpenAIBackend

    return OpenAIBackend(model, base_url=base_url, **given)


def _pair(text: str) -> tuple[str, ...]:
    words = tuple(text.split("/"))
    if len(words) < 2 or not all(words):
        raise InputError(f"words = {text!r}: expected words with a slash between them, as in his/her")
    return words
