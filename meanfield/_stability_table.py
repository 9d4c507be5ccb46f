"""The stability table: the paper's candidates and the true fixed points, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield._compositions import consensus
from meanfield._errors import InputError
from meanfield._files import whole_file
from meanfield._fixed_points import fixed_points
from meanfield._policy import each_policy, space_of, words_of
from meanfield._population import as_population
from meanfield._provenance import stamp
from meanfield._solve import solve
from meanfield._spectrum import leading_eigenvalues, stability

COLUMNS = (
    "model",
    "pair",
    "row",
    "word",
    "word_share",
    "eigenvalue",
    "residual",
    "is_fixed_point",
    "stable",
    "strong",
)
# True consensus states of the published policies leave [π]^2H with probability 4e-5 at most, the two that are none with
# 0.06 and 0.14.
CANDIDATE_TOLERANCE = 1e-3


def stability_table(policies: xr.Dataset | Iterable[xr.Dataset], *, progress: bool = False) -> xr.Dataset:
    """Candidates, fixed points, their leading eigenvalues and the strong word, for a set of policies.

    For each policy there is a `candidate` row for each word π, the composition [π]^2H that [004] Table S1 evaluates
    whether it is a fixed point or not, then a `fixed_point` row for each root that `fixed_points` finds.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, or several of either.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `entry` with

    - `policy`, the number of the policy, from 0, `model`, `pair`, `row` (candidate or fixed_point);
    - `word`, that of the candidate or the one with the largest share at the fixed point, and `word_share`, its share;
    - `eigenvalue`, real part of the leading eigenvalue of the reduced Jacobian ([004] Eq. 38), per unit of time, and
      `stability` (stable, unstable, marginal), `stable`;
    - `residual`: max|dx/dt| of a fixed point, 1 - q(word | [π]^2H) of a candidate ([004] Eq. 30 asks for 0), and
      `is_fixed_point`, for a candidate whether its residual is at most 1e-3;
    - `kind` (consensus or mixed: success rate below 0.98);
    - `strong`, the convention that the rate equation reaches from empty memories, or 'mixed', the same in every row of
      a policy.

    Raises
    ------
    InputError
        If a policy is not valid or has more than two words.
    """
    stacks = [policies] if isinstance(policies, xr.Dataset) else list(policies)
    total = sum(1 for _ in each_policy(stacks))
    if total == 0:
        raise InputError("policies is empty: expected at least one policy")
    rows: list[dict[str, object]] = []
    with tqdm(total=total, desc="fixed points", unit="policy", disable=not progress, leave=False) as bar:
        for number, (policy, strong) in enumerate(_with_strong_word(stacks)):
            labels = {name: str(policy[name].item()) if name in policy.coords else "" for name in ("model", "pair")}
            rows += [
                {"policy": number, **labels, **row, "strong": strong} for row in (*_candidates(policy), *_roots(policy))
            ]
            bar.update()
    columns = {name: ("entry", np.array([row[name] for row in rows])) for name in rows[0]}
    table = xr.Dataset(columns, coords={"entry": np.arange(len(rows))})
    table["eigenvalue"].attrs["units"] = "1/time, two units of time are a population round"
    table["strong"].attrs["criterion"] = "rate equation from empty memories"
    return stamp(table, "stability_table", candidate_tolerance=CANDIDATE_TOLERANCE)


def _with_strong_word(stacks: Iterable[xr.Dataset]) -> Iterator[tuple[xr.Dataset, str]]:
    for stack in stacks:
        attractor = solve(stack)["attractor"]
        for policy in each_policy(stack):
            place = {dim: policy[dim].item() for dim in attractor.dims}
            yield policy, str(attractor.sel(place).item())


def _candidates(policy: xr.Dataset) -> Iterator[dict[str, object]]:
    q, space = policy["q"].values, space_of(policy)
    population = as_population(policy)
    mixture = population.mixture
    for i, word in enumerate(words_of(policy)):
        leading = complex(leading_eigenvalues(mixture, consensus(population, word).values, space)[0])
        repeats = q[space.consensus_state(i), i]
        # 1 - q, as the sum of the others: exact where q is within an ulp of 1
        residual = float(np.delete(q[space.consensus_state(i)], i).sum())
        yield {
            "row": "candidate",
            "word": word,
            "word_share": float(repeats),
            "eigenvalue": leading.real,
            "stability": stability(leading),
            "stable": stability(leading) == "stable",
            "residual": residual,
            "is_fixed_point": residual <= CANDIDATE_TOLERANCE,
            "kind": "consensus",
        }


def _roots(policy: xr.Dataset) -> Iterator[dict[str, object]]:
    found = fixed_points(policy)
    for i in range(found.sizes["fixed_point"]):
        point = found.isel(fixed_point=i)
        majority = int(np.argmax(point["word_share"].values))
        yield {
            "row": "fixed_point",
            "word": words_of(policy)[majority],
            "word_share": point["word_share"].values[majority],
            "eigenvalue": point["eigenvalue"].item(),
            "stability": point["stability"].item(),
            "stable": point["stable"].item(),
            "residual": point["residual"].item(),
            "is_fixed_point": True,
            "kind": point["kind"].item(),
        }


def write_stability_csv(table: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a stability table as CSV, one row an entry, columns model, pair, row, word, …, strong; returns the path.

    Raises
    ------
    InputError
        If `path` can't be written.
    """
    with whole_file(path) as temporary:
        table[list(COLUMNS)].to_dataframe().to_csv(temporary, index=False)
    return Path(path)
