"""The stability table: the paper's candidates and the true fixed points, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield._dynamics.basins import basins
from meanfield._dynamics.recurrence import STEADY
from meanfield._dynamics.solve import solve
from meanfield._finite_size.group_size_law import group_size_law
from meanfield._fixed_points.points import Points, all_points
from meanfield._fixed_points.spectrum import Eigenvalues, leading_of_each
from meanfield._numerics.stability import stability
from meanfield._population.mixture import Groups, Mixture
from meanfield._population.observables import MIXED, leading_word
from meanfield._population.population import Population
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import each_policy
from meanfield._population.stacks import as_games
from meanfield.toolbox._arguments import one_or_several
from meanfield.toolbox._errors import InputError

# True consensus states of the published policies leave [π]^2H with probability 4e-5 at most; the two candidates that
# are not consensus states leave it with 0.06 and 0.14.
CANDIDATE_TOLERANCE = 1e-3
NOT_FIXED = "not fixed"

CRITERIA = ("trajectory", "basin", "law")
# Published policies that come to rest do so within 300; what takes longer has no attractor to count.
BASIN_MAX_TIME = 500.0
TOGETHER = 8  # policies between two looks at the progress bar
TIE = 1e-6  # separatrices are known to 1e-7

Policies = xr.Dataset | Population


def stability_table(
    policies: Policies | Iterable[Policies], *, criteria: Sequence[str] = ("trajectory",), progress: bool = False
) -> xr.Dataset:
    """Candidates, fixed points, their leading eigenvalues and the strong word, for a set of policies.

    For each policy the table has one `candidate` row for each word π, the composition [π]^2H (all agents remember only
    π), which [004] Table S1 evaluates whether or not it is a fixed point. A `fixed_point` row for each root of
    `fixed_points` follows.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, a population, or several of these.
    criteria
        How to determine the strong word. 'trajectory': where the rate equation leads from empty memories. 'basin': the
        attractor with the largest part of the family 'consensus' of `basins`. 'law': the word at which groups of any
        size are likelier to end by `group_size_law`; it agrees with the trajectory wherever the law applies, and adds κ
        (see there) and the existence of a second attractor. The last two take about a second a policy and need two
        words; 'law' is for single policies.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `entry` with

    - `policy`, the number of the policy, from 0; `model`; `pair`; `row` (candidate or fixed_point);
    - `word`, the candidate or the word with the largest share at the fixed point, and `word_share`, its share;
    - `eigenvalue`, the real part of the leading eigenvalue of the reduced Jacobian ([004] Eq. 38) per unit of time,
      with `stability` (stable, unstable, marginal; 'not fixed' for a candidate that is not a fixed point), `stable`,
      `eigenvalue_error` and `eigenvalue_floor_shift` (see `fixed_points`);
    - `residual`: max|dx/dt| of a fixed point; 1 - Q of a candidate, for a single policy 1 - q(word | [π]^2H), which is
      0 at a fixed point ([004] Eq. 30);
    - `is_fixed_point`, for a candidate whether its residual is at most 1e-3;
    - `kind` (consensus, or mixed with a success rate below 0.98);
    - `strong`, the strong word by the trajectory, 'mostly A (0.97)' where its end is not a consensus.

    With 'basin' the columns `strong_by_basin`, in the same form ('' for a tie), and `basin`, the fraction of the
    family, are added; with 'law' `strong_by_law` ('' if there is no law) and `kappa`; with either `disagreement`,
    whether most agents say different words by these criteria. They are the same in every row of a policy, as is
    `strong`.

    Raises
    ------
    InputError
        If a policy is not valid, there is none, or a criterion is unknown.

    See Also
    --------
    stability_report : on a terminal
    describe_stability : in sentences
    write_stability : as a file

    Examples
    --------
    >>> policies = meanfield.datasets.smollm2().sel(pair=["his/her", "woman/man"])
    >>> table = meanfield.stability_table(policies).to_dataframe()
    >>> table[["pair", "row", "word", "eigenvalue", "residual", "strong"]].round(3)
                pair          row   word  eigenvalue  residual             strong
    entry
    0        his/her    candidate    his      -0.095     0.175  mostly his (0.53)
    1        his/her    candidate    her      -0.044     0.158  mostly his (0.53)
    2        his/her  fixed_point    his      -0.183     0.000  mostly his (0.53)
    3      woman/man    candidate  woman      -0.332     0.851                man
    4      woman/man    candidate    man      -0.311     0.000                man
    5      woman/man  fixed_point    man      -0.311     0.000                man
    """
    if isinstance(criteria, str) or any(name not in CRITERIA for name in one_or_several(criteria)):
        raise InputError(f"criteria = {criteria!r}: expected some of {', '.join(CRITERIA)}, in a list")
    entries = [entry for stack in one_or_several(policies) for entry in _entries(stack, {*criteria} != {"trajectory"})]
    if not entries:
        raise InputError("policies is empty: expected at least one policy")
    rows: list[dict[str, object]] = []
    with tqdm(total=len(entries), desc="fixed points", unit="policy", disable=not progress, leave=False) as bar:
        for first in range(0, len(entries), TOGETHER):
            some = entries[first : first + TOGETHER]
            for number, (entry, (candidates, points)) in enumerate(zip(some, _found(some), strict=True), first):
                labels = {"policy": number, "model": entry.model, "pair": entry.pair}
                words = {"strong": entry.strong, **_other_criteria(entry, criteria)}
                rows += [
                    {**labels, **row, **words} for row in (*_candidates(entry, candidates), *_roots(entry, points))
                ]
                bar.update()
    columns = {name: ("entry", np.array([row[name] for row in rows])) for name in rows[0]}
    table = xr.Dataset(columns, coords={"entry": np.arange(len(rows))})
    table["eigenvalue"].attrs["units"] = "1/time, two units of time are a population round"
    table["strong"].attrs["criterion"] = "rate equation from empty memories"
    return stamp(table, "stability_table", candidate_tolerance=CANDIDATE_TOLERANCE, criteria=", ".join(criteria))


class Entry(NamedTuple):
    """One policy or population of the table."""

    model: str
    pair: str
    name: str
    words: tuple[str, ...]
    mixture: Mixture | Groups
    strong: str  # the name of its trajectory's end
    leads: str  # the word that most agents say there
    policy: Policies | None  # where criteria ask for it


def _entries(stack: Policies, whole: bool) -> Iterator[Entry]:
    games, ends = as_games(stack, "policies", in_groups=True), solve(stack)
    strong, leads = ends["label"].values.ravel(), ends["leading_word"].values.ravel()
    labels = games.labels("model"), games.labels("pair"), games.names, games.words, games.mixtures
    policies = _each(stack) if whole else [None] * len(games.mixtures)
    for place, *entry, policy in zip(games.places or [0], *labels, policies, strict=True):
        yield Entry(*entry, str(strong[place]), str(leads[place]), policy)


def _each(stack: Policies) -> Iterator[Policies]:
    if isinstance(stack, Population):
        yield stack
    else:
        yield from each_policy(stack)


def _other_criteria(entry: Entry, criteria: Sequence[str]) -> dict[str, object]:
    """The strong word by basin and by group-size law, and whether they contradict the trajectory's."""
    columns: dict[str, object] = {}
    policy, named = entry.policy, {entry.leads}
    if "basin" in criteria:
        found = basins(policy, max_time=BASIN_MAX_TIME)
        order = np.argsort(-found["fraction"].values)
        largest, *others = found["fraction"].values[order]
        tied = len(others) > 0 and largest - others[0] < TIE
        columns["strong_by_basin"] = "" if tied else str(found["label"].values[order[0]])
        if not tied and found["outcome"].values[order[0]] == STEADY:
            named.add(leading_word(found["word_share"].transpose("attractor", "word").values[order[0]], entry.words))
        columns["basin"] = float(largest)
    if "law" in criteria:
        law = None if isinstance(policy, Population) else group_size_law(policy)
        if law is not None and law["attractors"].item() != 2:  # no group ends at either word
            law = None
        word = "" if law is None else str(law["strong_word"].item())
        columns["strong_by_law"] = entry.strong if word == entry.leads != "" else word
        columns["kappa"] = np.nan if law is None else float(law["kappa"].item())
        named.add(word)
    if columns:
        columns["disagreement"] = len(named - {""}) > 1
    return columns


def _found(entries: list[Entry]) -> Iterator[tuple[list[Eigenvalues], Points]]:
    """The eigenvalues at the candidates and the fixed points of each entry."""
    for space, some in itertools.groupby(entries, lambda entry: entry.mixture.space):
        alike = list(some)
        mixtures = [entry.mixture for entry in alike]
        points = all_points(mixtures, [one.name for one in alike], [one.words for one in alike])
        n_words = space.n_words
        at = [mixture.consensus(word) for mixture in mixtures for word in range(n_words)]
        candidates = leading_of_each([mixture for mixture in mixtures for _ in range(n_words)], at)
        for number, one in enumerate(points):
            yield candidates[n_words * number : n_words * (number + 1)], one


def _candidates(entry: Entry, candidates: Sequence[Eigenvalues]) -> Iterator[dict[str, object]]:
    mixture = entry.mixture
    for w, (word, found) in enumerate(zip(entry.words, candidates, strict=True)):
        said = mixture.q[:, mixture.space.consensus_state(w)]
        share = mixture.share @ said + mixture.committed
        # 1 - q, as the sum of the others: exact where q is within an ulp of 1
        residual = float(np.delete(share, w).sum())
        eigenvalue = found.values[0], found.errors[0], found.floor_shifts[0]
        yield _row("candidate", word, share[w], eigenvalue, residual, residual <= CANDIDATE_TOLERANCE, "consensus")


def _roots(entry: Entry, points: Points) -> Iterator[dict[str, object]]:
    for i, said in enumerate(points.word_share):
        word, kind = entry.words[int(np.argmax(said))], MIXED if points.convention[i] == MIXED else "consensus"
        eigenvalue = points.leading[i], points.error[i], points.floor_shift[i]
        yield _row("fixed_point", word, said.max(), eigenvalue, points.residual[i], True, kind)


def _row(
    row: str,
    word: str,
    share: float,
    eigenvalue: tuple[complex, float, float],
    residual: float,
    is_fixed_point: bool,
    kind: str,
) -> dict[str, object]:
    """A row of the table, from the leading eigenvalue with its error and its shift without floors."""
    leading, error, shift = eigenvalue
    status = str(stability(leading, error)) if is_fixed_point else NOT_FIXED
    return {
        "row": row,
        "word": word,
        "word_share": float(share),
        "eigenvalue": float(leading.real),
        "eigenvalue_error": float(error),
        "eigenvalue_floor_shift": float(shift),
        "stability": status,
        "stable": status == "stable",
        "residual": float(residual),
        "is_fixed_point": is_fixed_point,
        "kind": kind,
    }
