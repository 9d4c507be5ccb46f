"""Warnings about the measurement of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from meanfield import InputError, each_policy
from meanfield.toolbox import expect, one_or_several, real_number, stamp
from policy_extraction.prompts._orders import default_number

STACKED_DIMS = ("model", "pair")
IMPROBABLE = -9.0  # log10; low, because similar states make a gap more likely than the bound says
NEXT_TO_NOTHING = 1e-12  # below it are the zeros of filters and their substitutes, such as 2.2e-16
LEAST_VALUES = 3  # different values from which the hazard rate is estimated
NUMBERS = {
    "gap_edge": "lowest choice probability above 1e-12",
    "gap_log10_p": "log10 of the probability that no q lies between 1e-12 and gap_edge",
    "top_p": "p of a nucleus filter on each presentation order that leaves such a gap",
    "lowest_mass": "lowest captured mass",
    "median_mass": "median captured mass",
    "order_effect": "r.m.s. change of the log-probabilities of words with presentation order",
    "word_effect": "r.m.s. difference between the log-probabilities of words, orders averaged",
    "censored_fraction": "fraction of log-probabilities that are upper bounds only",
}
Finding: TypeAlias = tuple[str, dict[str, float]]
"""A warning or '', and the numbers behind it."""
NOTHING: Finding = "", {}


def check_policy(policies: xr.Dataset | Iterable[xr.Dataset], *, least_mass: float = 0.5) -> xr.Dataset:
    """Warnings about the measurement of policies: unseen filters, low captured mass, order effects, censoring.

    filter
        No probability lies between 1e-12 and some edge, but many lie below. A nucleus filter in each of n presentation
        orders before the average leaves (1 - p) / n as the lowest value of two words. A gap is reported if its
        probability is below 1e-9 for log-odds of a log-concave distribution, or if one word is certain in each order.
        Policies whose attrs declare a filter are not reported.
    captured_mass
        In some prompts all words together have a probability below `least_mass`. Censored words count 0.
    order_effect
        Let c = ℓ - mean_w ℓ be the log-probabilities centred over words. The order effect is the root mean square of
        c - mean_o c over orders, states and words. The word effect is the root mean square of mean_o c over states and
        words: the change of log-probabilities with words and memory. Reported if the order effect is larger. States in
        which a word is censored or has probability 0 are left out.
    censored
        Some log-probabilities are upper bounds only.

    Parameters
    ----------
    policies
        Policies, stacks of them, or records (with `log_probability` and no `q`), which are not checked for filters.
    least_mass
        Captured mass below which a prompt is reported, in [0, 1].

    Returns
    -------
    Dataset with `warning` (policy, check), a sentence or '', and the numbers behind them over `policy`, NaN if the
    policy lacks the data; coordinates `model` and `pair` if they are known. `policy_warnings` lists the sentences.

    Raises
    ------
    InputError
        If `policies` holds neither policies nor records, or `least_mass` is out of range.

    See Also
    --------
    policy_warnings : the sentences
    policy_extraction.checks.comprehension, policy_extraction.checks.generation_test : checks that ask the model again

    Examples
    --------
    The words are improbable answers, and their order matters almost as much as words and memory.

    >>> from policy_extraction import check_policy
    >>> report = check_policy(meanfield.datasets.smollm2().sel(pair="his/her")).squeeze("policy")
    >>> [check for check in report["check"].values.tolist() if report["warning"].sel(check=check).item()]
    ['captured_mass']
    >>> round(report["median_mass"].item(), 3), round(report["order_effect"].item() / report["word_effect"].item(), 1)
    (0.057, 0.9)
    """
    real_number("least_mass", least_mass, least=0, most=1)
    checked = list(_each(policies))
    if not checked:
        raise InputError("policies is empty: expected at least one policy")
    found = [
        {
            "filter": _filter(policy),
            "captured_mass": _mass(policy, least_mass),
            "order_effect": _order_effect(policy),
            "censored": _censored(policy),
        }
        for policy in checked
    ]
    sentences = np.array([[warning for warning, _ in row.values()] for row in found])
    report = xr.Dataset(
        {"warning": (("policy", "check"), sentences)},
        coords={"policy": np.arange(len(found)), "check": np.array(list(found[0]))},
    )
    numbers = [{name: value for _, some in row.values() for name, value in some.items()} for row in found]
    for name, long_name in NUMBERS.items():
        values = np.array([each.get(name, np.nan) for each in numbers], dtype=np.float64)
        report[name] = ("policy", values, {"long_name": long_name, "units": "1"})
    for name in STACKED_DIMS:
        if all(name in policy.coords for policy in checked):
            report = report.assign_coords({name: ("policy", [str(policy[name].item()) for policy in checked])})
    return stamp(report, "policy_check", least_mass=float(least_mass))


def policy_warnings(report: xr.Dataset | Iterable[xr.Dataset]) -> list[str]:
    """The warnings of `check_policy` as sentences, each after the name of its policy.

    Parameters
    ----------
    report
        Result of `check_policy`, or policies as it takes them.

    Raises
    ------
    InputError
        If it is neither.

    See Also
    --------
    check_policy : the numbers behind them

    Examples
    --------
    >>> from policy_extraction import policy_warnings
    >>> for warning in policy_warnings(meanfield.datasets.smollm2().sel(pair="his/her")):
    ...     print(warning)
    SmolLM2-135M-Instruct his/her: in 2730 of 2730 prompts the words together have a probability below ...
    """
    if not isinstance(report, xr.Dataset) or {"q", "log_probability"} & set(report.variables):
        report = check_policy(report)
    found = []
    report = expect(report, "policy_check", "report").transpose("policy", "check")
    for i in range(report.sizes["policy"]):
        name = " ".join(str(report[dim].values[i]) for dim in STACKED_DIMS if dim in report.coords) or f"policy {i}"
        found += [f"{name}: {text}" for text in report["warning"].values[i].tolist() if text]
    return found


def _each(policies: xr.Dataset | Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
    """The single policies and records."""
    if not isinstance(policies, xr.Dataset):
        if isinstance(policies, str) or not isinstance(policies, Iterable):
            raise InputError(f"policies is a {type(policies).__name__}: expected xarray.Datasets")
        for one in one_or_several(policies):
            yield from _each(one)
    elif "q" in policies or "log_probability" not in policies:
        yield from each_policy(policies)
    else:
        stacked = [dim for dim in STACKED_DIMS if dim in policies["log_probability"].dims]
        for index in np.ndindex(*(policies.sizes[dim] for dim in stacked)):
            yield policies.isel(dict(zip(stacked, index, strict=True)))


def _filter(policy: xr.Dataset) -> Finding:
    if "q" not in policy:
        return NOTHING
    q, n_orders = policy["q"].values, _n_orders(policy)
    gap = find_gap(q)
    numbers = {"gap_edge": gap.edge, "gap_log10_p": gap.log10_p}
    warning = ""
    if gap.log10_p < IMPROBABLE:
        # A filter at p keeps at least 1 - p for the second of two words, which W - 1 words may share.
        numbers["top_p"] = 1 - n_orders * (q.shape[-1] - 1) * gap.edge
        warning = (
            f"{gap.zeros} of {q.size} probabilities are below 1e-12 and no other is below {gap.edge:.3g} (without a "
            f"filter a chance of 1e{gap.log10_p:.0f}), as after a nucleus filter with top-p "
            f"{'' if q.shape[-1] == 2 else 'of at least '}{max(0, numbers['top_p']):.3f} in each of {n_orders} orders."
        )
    elif gap.zeros and np.abs(q * n_orders - (q * n_orders).round()).max() < 1e-9:
        warning = (
            f"all probabilities are multiples of 1/{n_orders}, as if in each of {n_orders} orders the most probable "
            "word were certain (temperature 0, or top-k 1)."
        )
    declared = any(policy.attrs.get(f"option_{name}", "none") != "none" for name in ("top_k", "top_p"))
    return "" if declared else warning, numbers


def _n_orders(policy: xr.Dataset) -> int:
    """The number of presentation orders of the average, by the record or else by convention."""
    if policy.attrs.get("option_order", "none") != "none":
        return 1
    return policy.sizes.get("order", default_number(policy.sizes["word"]))


class Gap(NamedTuple):
    """The gap between almost 0 and the lowest other probability."""

    zeros: int  # probabilities below the gap
    edge: float  # the lowest probability above it
    log10_p: float  # log10 of an upper bound for the probability of the gap; NaN if too little is known


def find_gap(q: np.ndarray) -> Gap:
    """The gap near 0 in the probabilities of all words, and a bound of its probability; `q` has any shape.

    Let s = -log(q / (1 - q)) > 0 for the probabilities below 1/2. The null hypothesis is a log-concave density of s, as
    normal, logistic and exponential distributions have it. Then the hazard rate of s (density at s over the share of
    values beyond s) does not fall, and a value that passes the edge s_1 of the gap has to end soon. Take the half of
    the values closest to the gap, from s_0 to s_1, with k + 1 different ones, and the n zeros beyond. Per length of s
    passed, values end at least as often in the gap as before it. They passed τ = Σ (s - s_0) + n (s_1 - s_0) before the
    gap and τ' = n · (width of the gap) in it. So the probability that all k values besides the one at the edge ended
    before the gap is at most (τ / (τ + τ'))^k. Equal values count once, because language models compute with few
    digits.

    The test can't tell a filter from a model that is either certain to within 1e-12 or far from certain.
    """
    low = q[q < 0.5]
    zeros, positive = int((low <= NEXT_TO_NOTHING).sum()), low[low > NEXT_TO_NOTHING]
    s = np.unique((-_logit(positive)).round(9))
    edge = float(positive.min()) if s.size else np.nan
    if zeros == 0 or s.size < LEAST_VALUES:
        return Gap(zeros, edge, np.nan)
    start = np.median(s)
    above = s[s > start]
    at_risk = (above - start).sum() + zeros * (s[-1] - start)
    in_gap = zeros * max(0.0, -_logit(np.float64(NEXT_TO_NOTHING)) - s[-1])
    return Gap(zeros, edge, float((above.size - 1) * np.log10(at_risk / (at_risk + in_gap))))


def _logit(q: np.ndarray) -> np.ndarray:
    return np.log(q) - np.log1p(-q)


def _mass(policy: xr.Dataset, least: float) -> Finding:
    if "captured_mass" not in policy:
        return NOTHING
    mass = policy["captured_mass"].values
    if "log_probability" in policy:
        log_p, censored = _measured(policy)
        mass = np.exp(np.where(censored, -np.inf, log_p)).sum(-1)
    low, median = int((mass < least).sum()), float(np.median(mass))
    warning = (
        f"in {low} of {mass.size} prompts the words together have a probability below {least:g} (median {median:.2g}, "
        f"lowest {mass.min():.2g}): the model would rather say something else."
    )
    return warning if low else "", {"lowest_mass": float(mass.min()), "median_mass": median}


def _order_effect(policy: xr.Dataset) -> Finding:
    if "log_probability" not in policy or policy.sizes["order"] < 2:
        return NOTHING
    log_p, censored = _measured(policy)
    known = (np.isfinite(log_p) & ~censored).all((0, 2))
    if not known.any():
        return NOTHING
    centred = log_p[:, known] - log_p[:, known].mean(-1, keepdims=True)
    average = centred.mean(0)
    order, word = (float(np.sqrt((part**2).mean())) for part in (centred - average, average))
    warning = (
        f"the order in which words are presented changes their log-probabilities by {order:.2g} (r.m.s.), more than "
        f"words and memory do ({word:.2g})."
    )
    return warning if order > word else "", {"order_effect": order, "word_effect": word}


def _censored(policy: xr.Dataset) -> Finding:
    if "log_probability" not in policy:
        return NOTHING
    censored = _measured(policy)[1]
    warning = (
        f"{censored.sum()} of {censored.size} log-probabilities are upper bounds only, in {censored.any(-1).sum()} of "
        f"{censored[..., 0].size} prompts: the model's interface did not list the word."
    )
    return warning if censored.any() else "", {"censored_fraction": float(censored.mean())}


def _measured(policy: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities and censoring, shape (order, state, word)."""
    log_p = policy["log_probability"].transpose("order", "state", "word")
    censored = policy.get("censored", xr.zeros_like(log_p, dtype=bool)).transpose(*log_p.dims)
    return log_p.values, censored.values.astype(bool)
