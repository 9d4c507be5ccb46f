"""The rule that a model plays: rules with a few parameters fitted to a policy or to counted choices, and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy.special import expit, ndtri, xlogy
from tqdm.auto import tqdm

import meanfield
from meanfield import InputError, MemorySpace
from meanfield.toolbox import check_level, instance, labelled, one_of, one_or_several, stamp, whole_number
from theory.naming_game._collective import collective_numbers, labels_of, other_word, stacked
from theory.naming_game._rule_data import Data, Weights, check_weights, count_data, policy_data
from theory.naming_game._rules import PARAMETERS, POSITIVE, RULES, Memories, expanded_logits

STARTS = 8
STEPS = 200  # of Newton's method at most; 10 to 40 are usual
LEAST_GAIN = 1e-16  # that a step promises, in nats a choice: a parameter on its way to infinity goes no further
LONGEST = 20.0  # step of a coordinate
DAMPED = 1e-3  # damping at first
KNOWN = 1.0  # standard error in a coordinate, as in `theory.fit_mechanism1`: a factor of e, or a nat
POLICY_CHOICES = 1e6  # so many choices decide whether a parameter of a policy, which has no error, is determined
LEAST_CURVATURE = 1e-4  # instead of none: a standard error of 100
SAME = 1e-9  # nats a choice
MISSED = 5


class Fitted(NamedTuple):
    """All rules fitted to one policy or table of counts."""

    coordinates: list[Float[np.ndarray, " parameters"]]  # of each rule
    errors: list[Float[np.ndarray, " parameters"]]  # their standard errors
    logit: Float[np.ndarray, "rules states"]
    held_out: Float[np.ndarray, "rules folds"]  # log-likelihoods


def fit_rule(
    data: xr.Dataset | xr.DataArray,
    *,
    rule: str | Sequence[str] | None = None,
    weights: Weights = "visited",
    folds: int = 10,
    collective: bool = True,
    level: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
) -> xr.Dataset:
    """Fit simple rules of choice to a policy or to counted choices, to see which one a model plays.

    A rule gives the logit ℓ = ln q(first word)/q(second word) of each memory. With an empty memory it is the parameter
    `empty`, otherwise `bias`, positive if the model prefers the first word, plus

    - 'constant': nothing;
    - 'imitation': strength·h_0;
    - 'best_response' to the remembered words, with noise (Blume 1993): inverse_temperature·h̄;
    - 'win_stay_lose_shift': stay·s_0 after a success, -shift·s_0 after a failure;
    - 'primacy': own·s + heard·h of the oldest interaction;
    - 'majority': strength Σ_k w_k h_k, where the weights w_k are proportional to recency^k and 1 together;
    - 'threshold': sharpness·s_0·(threshold - share of heard words that differ from s_0);
    - 'luce': choices proportional to (number heard)^exponent + prior·e^(±bias/2), which is all of ℓ;
    - 'counts': Σ_k w_k (own·s_k + heard·h_k).

    Here s_k and h_k are the words said and heard k interactions ago, 1 for the first and -1 for the second word, and h̄
    is the mean of h_k. A success counts as (s_k + h_k)/2, so a third weight for successes would be no further parameter
    of 'counts'. 'counts' contains 'majority' and, for recency → 0, 'win_stay_lose_shift'; both contain 'imitation'. All
    contain 'constant', and recency above 1 weighs old interactions more than late ones.
    The parameters recency, sharpness, exponent and prior are above 0.

    A policy is fitted by the least Kullback-Leibler divergence, Σ_i w_i KL(q_i||rule_i), counts by the largest
    likelihood of independent choices, with Newton's method from eight starts and exact derivatives. Rules are
    compared by what they say of choices that they were not fitted to.

    Parameters
    ----------
    data
        A policy of two words or a stack of policies over model and pair; or counts of choices, a DataArray of whole
        numbers over (state, word), or (run, state, word).
    rule
        Names of the rules to fit. Default: all. 'constant' is always fitted.
    weights
        Weights of the memories of a policy. 'visited': the fraction of agents who have them, half over 30 rounds from
        empty memories, half at the attractors and marginal points, with equal weights. 'uniform': all alike. Or a
        number for each memory, above 0 for two that are not empty. Counts need none.
    folds
        Number of parts that are held out in turn, ≥ 2: sets of runs, if the counts have several, otherwise sets of
        memories at random. The empty memory, which every rule fits by itself, is then not held out.
    collective
        Whether to compute the behaviour of populations that play the rules, in a few seconds a policy.
    level
        Level of the intervals, of counts only.
    seed
        Seed of the starts and folds.
    progress
        Show a progress bar. Default: on a terminal. Memories of five interactions take half a minute.

    Returns
    -------
    Dataset over `rule`, and over the dims of a stack, with

    - `estimate`, `standard_error` and `interval` (bound) of each parameter, NaN where a rule does not have it. Standard
      errors are from the observed information, for positive parameters in logarithms. A policy has none;
    - `identified`: whether a parameter is known within a factor of e, or within 1, by the counts, or would be by
      a million choices for a policy;
    - `log_likelihood`, of a policy per choice; `divergence` in bits a choice, for counts from their frequencies, and
      `explained` = 1 - divergence/(divergence of 'constant'), NaN if even that is 0;
    - `accuracy`, the part of the choices that are the rule's likelier word, where equally likely words count half;
    - `held_out_log_likelihood` per choice; `held_out_loss`, by how much it is below the best rule's, with its
      standard error over folds `held_out_loss_error`. `best` is the rule with the fewest parameters whose loss is at
      most its standard error, and among several of as few the one with the least loss; those may be nearly as good;
    - `q` (state), the rule's probability of `first_word`, and `weight` (state), which sums to 1;
    - over `missed`, the memories with the largest weight times divergence: `missed_memory`, oldest interaction first,
      `missed_q` in the data, `missed_rule_q`, `missed_weight`, and `missed_share` of the divergence;
    - with `collective`: `kappa` and `strong_word` of `meanfield.group_size_law`, `critical_mass` of agents committed to
      the weak word of the policy (of the rule for counts, or where the policy has none), and `conventions`, the
      attractors; `reason` says why some are missing. `table_kappa` and the others belong to the policy itself.

    Raises
    ------
    InputError
        If an argument is not as described; the message tells all that is wrong.

    See Also
    --------
    summary : the parameters as a table
    rule_policy : agents who play a rule
    meanfield.sensitivity : the memories on which κ depends

    Examples
    --------
    >>> from theory.naming_game import fit_rule, rule_policy, summary
    >>> parameters = {"empty": 0.1, "bias": 0.3, "strength": 1.5, "recency": 0.7}
    >>> policy = rule_policy("majority", parameters, ["A", "B"], memory_length=2)
    >>> fit = fit_rule(policy, rule=["imitation", "majority"], collective=False)
    >>> fit["best"].item(), fit["explained"].values.round(3)
    ('majority', array([0.   , 0.671, 1.   ]))
    >>> summary(fit.sel(rule=["majority"]))["estimate"].round(2).to_dict()
    {('majority', 'empty'): 0.1, ('majority', 'bias'): 0.3, ('majority', 'strength'): 1.5, ('majority', 'recency'): 0.7}
    """
    policies = _checked(data, rule, weights, folds, level, seed)
    asked = RULES if rule is None else {"constant", *one_or_several(rule)}
    names = [name for name in RULES if name in asked]
    steps = len(policies) * (1 + len(names) * (1 + bool(collective)))
    results = []
    hidden = None if progress is None else not progress
    with tqdm(total=steps, desc="rules", disable=hidden, leave=False) as bar:
        for one in policies:
            read = count_data(one) if isinstance(one, xr.DataArray) else policy_data(one, weights)
            bar.update()
            fitted = _fitted(read, names, folds, seed, bar.update)
            columns = _columns(read, fitted, names, level)
            if collective:
                columns |= _collective_columns(read, fitted, names, bar.update)
            coords = {"rule": names, "parameter": list(PARAMETERS), "bound": ["low", "high"]}
            coords |= {"state": np.arange(read.space.n_states), "missed": np.arange(MISSED)}
            results.append(labelled(columns, coords).assign_coords(labels_of(one)))
    result = results[0] if len(results) == 1 else stacked(results)
    options = {"weights": weights if isinstance(weights, str) else "given", "folds": folds, "level": level}
    return stamp(result, "rule_fit", None, **options, seed=seed)


def _checked(
    data: object, rule: object, weights: object, folds: object, level: object, seed: object
) -> list[xr.Dataset | xr.DataArray]:
    """The single policies or the counts; InputError with all complaints."""

    def policies() -> list:
        if isinstance(data, xr.DataArray):
            count_data(data)
            if not isinstance(weights, str) or weights != "visited":
                raise InputError("weights are given: expected with a policy only, as counts have their own")
            return [data]
        return list(meanfield.each_policy(instance("data", data, xr.Dataset)))  # type: ignore[arg-type]

    checks: list[Callable[[], Any]] = [
        policies,
        lambda: _check_rule(rule),
        lambda: check_weights(weights),
        lambda: whole_number("folds", folds, 2),
        lambda: check_level(level),  # type: ignore[arg-type]
        lambda: whole_number("seed", seed),
    ]
    return checked(checks)[0]


def checked(checks: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of the checks; InputError with the complaints of all."""
    found, wrong = [], []
    for check in checks:
        try:
            found.append(check())
        except InputError as error:
            wrong.append(str(error))
    if wrong:
        raise InputError("; ".join(wrong))
    return found


def _check_rule(rule: object) -> None:
    names = [*RULES] if rule is None else one_or_several(rule)
    if not len(names):
        raise InputError(f"rule = {rule!r}: expected names of rules")
    for name in names:
        one_of("rule", name, RULES)


def _search(rule: str, starts: np.ndarray, tables: np.ndarray, memories: Memories) -> list[np.ndarray]:
    """The point with the least loss that Newton's method finds for each table of choices, its Hessian and logits.

    The loss is minus the log-likelihood.
    """

    def at(points: np.ndarray) -> list[np.ndarray]:
        with jax.enable_x64(True):
            logit, slopes, bends = map(np.asarray, expanded_logits(points, memories, rule))
        q, total = expit(logit), choices.sum(-1)
        by_logit = total * q - choices[..., 0]
        gradient = (by_logit[:, None] @ slopes)[:, 0]
        curvature = np.einsum("bs,bsij->bij", by_logit, bends)
        curvature += (slopes * (total * q * (1 - q))[..., None]).swapaxes(1, 2) @ slopes
        return [points, -_log_likelihoods(logit, choices), gradient, curvature, logit]

    choices = np.repeat(tables, len(starts), 0)
    found, damping = at(np.tile(starts, (len(tables), 1))), np.full(len(choices), DAMPED)
    for _ in range(STEPS):
        points, value, gradient, curvature, _ = found
        size, axes = np.linalg.eigh(np.nan_to_num(curvature))
        step = -np.einsum("bij,bj,bkj,bk->bi", axes, 1 / (np.abs(size) + damping[:, None]), axes, gradient)
        step *= np.minimum(1, LONGEST / np.abs(step).max(1, keepdims=True, initial=LONGEST))
        going = -(step * gradient).sum(1) > LEAST_GAIN
        if not going.any():
            break
        trial = at(points + step)
        better = going & (trial[1] < value)
        damping *= np.where(better, 0.2, 8)
        found = [
            np.where(better.reshape(-1, *[1] * (old.ndim - 1)), new, old) for new, old in zip(trial, found, strict=True)
        ]
    points, value, _, *others = (part.reshape(len(tables), len(starts), *part.shape[1:]) for part in found)
    best = np.nan_to_num(value, nan=np.inf).argmin(1)
    return [part[np.arange(len(tables)), best] for part in (points, *others)]


def _fitted(data: Data, names: list[str], folds: int, seed: int, report: Callable[[], object]) -> Fitted:
    held_out = data.folds(folds, seed)
    tables = np.concatenate([data.choices[None], data.choices - held_out])
    tables = tables / tables.sum((1, 2), keepdims=True)
    memories = Memories.of(data.space)
    most = max(len(rule.parameters) for rule in RULES.values())
    starts = np.vstack([np.zeros(most), np.random.default_rng(seed).standard_normal((STARTS - 1, most))])
    total = POLICY_CHOICES if data.policy is not None else data.choices.sum()
    found = []
    for name in names:
        points, curvature, logit = _search(name, starts[:, : len(RULES[name].parameters)], tables, memories)
        scores = _log_likelihoods(logit[1:], held_out)
        found.append((points[0], _errors(total * curvature[0]), logit[0], scores))
        report()
    coordinates, errors, logit, scores = zip(*found, strict=True)
    return Fitted([*coordinates], [*errors], np.array(logit), np.array(scores))


def _errors(curvature: np.ndarray) -> np.ndarray:
    """Standard errors; a coordinate that does nothing has the largest."""
    values, vectors = np.linalg.eigh(curvature)
    return np.sqrt((vectors**2 / np.maximum(values, LEAST_CURVATURE)).sum(1))


def _log_likelihoods(logit: np.ndarray, choices: np.ndarray) -> np.ndarray:
    return -(choices[..., 0] * np.logaddexp(0, -logit) + choices[..., 1] * np.logaddexp(0, logit)).sum(-1)


def _columns(data: Data, fitted: Fitted, names: list[str], level: float) -> dict[str, tuple]:
    of_memory, total = data.choices.sum(1), data.choices.sum()
    frequency = data.choices[:, 0] / np.where(of_memory > 0, of_memory, np.nan)
    if data.policy is not None:
        frequency = data.policy["q"].values[:, 0]
    score = _log_likelihoods(fitted.logit, data.choices)
    first = np.heaviside(fitted.logit, 0.5)
    right = (data.choices[:, 0] * first + data.choices[:, 1] * (1 - first)).sum(1) / total
    lost = np.stack([_divergence(frequency, logit) for logit in fitted.logit]) * of_memory / total  # bits
    divergence = lost.sum(1)
    missed = np.argsort(-lost, axis=1, kind="stable")[:, :MISSED]
    missed = np.pad(missed, ((0, 0), (0, MISSED - missed.shape[1])), mode="edge")
    share = np.take_along_axis(lost, missed, 1) / np.where(divergence > 0, divergence, np.nan)[:, None]
    baseline = divergence[0] if divergence[0] > SAME else np.nan
    texts = np.array([_text(data.space, state, data.words) for state in missed.ravel()]).reshape(missed.shape)
    loss, error, best = _held_out(fitted.held_out, names)
    held = fitted.held_out.sum(1)
    per_choice = 1 / float(data.choices.sum() if data.runs is not None else data.choices[1:].sum())
    over, rank = ("rule",), ("rule", "missed")
    n_parameters = [len(RULES[name].parameters) for name in names]
    return {
        **_parameter_columns(data, fitted, names, level),
        "n_parameters": (over, n_parameters, "number of parameters"),
        "log_likelihood": (over, score, "log-likelihood" + (" per choice" if data.policy is not None else "")),
        "divergence": (over, divergence, "divergence of the data from the rule", "bits"),
        "explained": (over, 1 - divergence / baseline, "part of the information about words that the rule explains"),
        "accuracy": (over, right, "part of the choices that are the likelier word of the rule"),
        "held_out_log_likelihood": (over, held * per_choice, "log-likelihood of choices held out, per choice"),
        "held_out_loss": (over, loss * per_choice, "how much it is below the best rule's"),
        "held_out_loss_error": (over, error * per_choice, "its standard error over folds"),
        "best": ((), best, "simplest rule within a standard error of the best one", ""),
        "first_word": ((), data.words[0], "first word", ""),
        "weight": (("state",), of_memory / total, "weight of the memory"),
        "q": (("rule", "state"), expit(fitted.logit), "probability of the first word"),
        "missed_memory": (rank, texts, "memory that the rule misses", ""),
        "missed_q": (rank, frequency[missed], "probability of the first word in the data"),
        "missed_rule_q": (rank, np.take_along_axis(expit(fitted.logit), missed, 1), "the same by the rule"),
        "missed_weight": (rank, of_memory[missed] / total, "weight of the memory"),
        "missed_share": (rank, share, "share of the divergence"),
    }


def _divergence(q: np.ndarray, logit: np.ndarray) -> np.ndarray:
    """KL(q||rule) in bits, 0 where q is not known."""
    q = np.nan_to_num(q, nan=0.5)
    nats = xlogy(q, q) + xlogy(1 - q, 1 - q) + q * np.logaddexp(0, -logit) + (1 - q) * np.logaddexp(0, logit)
    return np.maximum(nats, 0) / np.log(2)


def _held_out(scores: np.ndarray, names: list[str]) -> tuple[np.ndarray, np.ndarray, str]:
    """The loss of each rule against the best one, its standard error, and the simplest rule that may be as good."""
    below = scores[np.argmax(scores.sum(1))] - scores
    loss, error = below.sum(1), np.sqrt(below.shape[1]) * below.std(1, ddof=1)
    size = [len(RULES[name].parameters) for name in names]
    order = np.lexsort((np.round(loss / SAME), size, loss > np.maximum(error, SAME)))  # the first of equals stays first
    return loss, error, names[order[0]]


def _text(space: MemorySpace, state: int, words: tuple[str, ...]) -> str:
    return " ".join(f"{words[own]}/{words[partner]}" for own, partner in space.memory(int(state))) or "empty"


def _parameter_columns(data: Data, fitted: Fitted, names: list[str], level: float) -> dict[str, tuple]:
    table = np.full((len(names), len(PARAMETERS), 4), np.nan)
    identified = np.zeros(table.shape[:2], bool)
    for row, (name, point, error) in enumerate(zip(names, fitted.coordinates, fitted.errors, strict=True)):
        own = RULES[name].parameters
        places, positive = [PARAMETERS.index(one) for one in own], [one in POSITIVE for one in own]
        ends = point + ndtri((1 + level) / 2) * np.outer([0, -1, 1], error)
        with np.errstate(over="ignore"):  # an end may be infinite
            table[row, places, :3] = np.where(positive, np.exp(ends), ends).T
            table[row, places, 3] = np.where(positive, np.exp(point), 1) * error
        identified[row, places] = error < KNOWN
    if data.policy is not None:
        table[..., 1:] = np.nan
    over = ("rule", "parameter")
    return {
        "estimate": (over, table[..., 0], "likeliest value"),
        "standard_error": (over, table[..., 3], "standard error"),
        "interval": ((*over, "bound"), table[..., 1:3], f"{100 * level:g} % interval"),
        "identified": (over, identified, "whether it is known within a factor of e, or 1"),
    }


def _collective_columns(data: Data, fitted: Fitted, names: list[str], report: Callable[[], object]) -> dict[str, tuple]:
    """Numbers of populations that play the rules, and of the policy itself."""
    table = None if data.policy is None else collective_numbers(data.policy, data.words, "")
    weak = "" if table is None else other_word(data.words, table["strong_word"])
    rows = []
    for logit in fitted.logit:
        rows.append(collective_numbers(meanfield.make_policy(expit(logit), data.words), data.words, weak))
        report()
    labels = {
        "kappa": ("κ of the group-size law",),
        "strong_word": ("strong word", ""),
        "critical_mass": ("fraction committed to the weak word that turns the population",),
        "conventions": ("attractors", ""),
        "reason": ("why numbers are missing", ""),
    }
    columns = {name: (("rule",), [row[name] for row in rows], *label) for name, label in labels.items()}
    if table is not None:
        columns |= {f"table_{name}": ((), table[name], *label) for name, label in labels.items()}
    return columns


def summary(fit: xr.Dataset) -> pd.DataFrame:
    """The parameters of fitted rules as a table.

    Parameters
    ----------
    fit
        Result of `fit_rule` or `fit_runs`.

    Returns
    -------
    DataFrame with a row for each policy of a stack, rule and parameter, with `estimate`, the ends `low` and `high` of
    the interval, and `status`, 'determined' or 'not determined'.

    Raises
    ------
    InputError
        If `fit` is something else.

    See Also
    --------
    fit_rule : with an example
    theory.flag_game.summary : the same for the Flag Game

    Examples
    --------
    Fifty choices in each memory of one interaction:

    >>> from theory.naming_game import fit_rule, summary
    >>> counts = xr.DataArray(
    ...     [[26, 24], [44, 6], [9, 41], [40, 10], [5, 45]],
    ...     coords={"state": range(5), "word": ["A", "B"]}, dims=("state", "word"),
    ... )
    >>> summary(fit_rule(counts, rule="imitation", folds=2, collective=False)).loc["imitation"].round(2)
               estimate   low  high      status
    parameter
    empty          0.08 -0.47  0.63  determined
    bias          -0.08 -0.47  0.31  determined
    strength       1.74  1.35  2.13  determined
    """
    if not isinstance(fit, xr.Dataset) or fit.attrs.get("kind") not in ("rule_fit", "run_fit"):
        raise InputError("fit: expected the result of theory.naming_game.fit_rule or fit_runs")
    ends = {end: fit["interval"].sel(bound=end, drop=True) for end in ("low", "high")}
    table = xr.Dataset({"estimate": fit["estimate"], **ends, "status": fit["identified"]})
    dims = [dim for dim in ("model", "pair", "rule", "parameter") if dim in table.dims]
    rows = table.reset_coords(drop=True).to_dataframe(dim_order=dims).dropna(subset="estimate")
    return rows.assign(status=np.where(rows["status"], "determined", "not determined"))
