"""Is a policy what it seems to be? Warnings about how it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError, each_policy
from meanfield.toolbox import expect, real_number, stamp
from policy_extraction.checks._fingerprint import find_gap, multiples
from policy_extraction.prompts._orders import default_number

STACKED_DIMS = ("model", "pair")
IMPROBABLE = -9.0  # log10; states are alike, so that the chance of a gap is understated
NUMBERS = {
    "gap_edge": "lowest choice probability above 1e-12",
    "gap_log10_p": "log10 of the chance that no probability lies between 1e-12 and gap_edge",
    "top_p": "p of a nucleus filter on each presentation order that leaves such a gap",
    "lowest_mass": "lowest captured mass",
    "median_mass": "median captured mass",
    "order_effect": "r.m.s. change of the log-probabilities of words with presentation order",
    "word_effect": "r.m.s. difference between the log-probabilities of words, orders averaged",
    "censored_fraction": "fraction of log-probabilities that are upper bounds only",
}


def check_policy(policies: xr.Dataset | Iterable[xr.Dataset], *, least_mass: float = 0.5) -> xr.Dataset:
    """Warnings about the measurement behind policies: unseen filters, low captured mass, order effects, censoring.

    filter
        No probability lies between 1e-12 and some edge, but many lie below: a nucleus filter that acted on each of n
        presentation orders before the average leaves (1 - p) / n as the lowest value of two words. Reported where the
        gap has a chance of less than 1e-9 if log-odds follow a log-concave law, or where one word is certain in each
        order; not where the attrs say that a filter acted.
    captured_mass
        In some prompts the words have together a probability below `least_mass`. Censored words count nothing.
    order_effect
        With log-probabilities ℓ centred over words, c = ℓ - mean_w ℓ, the order effect is the root of the mean square
        of c - mean_o c over orders, states and words, and the word effect that of mean_o c over states and words: by
        how much words and memory move the log-probabilities. Reported where the former is larger. States in which a
        word is censored or has probability 0 are left out.
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
    Dataset with `warning` (policy, check), one sentence, '' where there is nothing to say, and over `policy` the
    numbers behind them, NaN where the policy does not hold what they need; coordinates `model` and `pair` where known.
    `policy_warnings` lists the sentences.

    Raises
    ------
    InputError
        If `policies` holds neither policies nor records, or `least_mass` is out of range.

    See Also
    --------
    policy_warnings : in sentences
    comprehension, generation_test : ask the model again
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
    checks = list(found[0])
    sentences = np.array([[row[check].warning for check in checks] for row in found])
    report = xr.Dataset(
        {"warning": (("policy", "check"), sentences)},
        coords={"policy": np.arange(len(found)), "check": np.array(checks)},
    )
    for name, long_name in NUMBERS.items():
        values = [next((f.numbers[name] for f in row.values() if name in f.numbers), np.nan) for row in found]
        report[name] = ("policy", np.array(values, dtype=np.float64), {"long_name": long_name, "units": "1"})
    for name in STACKED_DIMS:
        if all(name in policy.coords for policy in checked):
            report = report.assign_coords({name: ("policy", [str(policy[name].item()) for policy in checked])})
    return stamp(report, "policy_check", least_mass=float(least_mass))


def policy_warnings(report: xr.Dataset | Iterable[xr.Dataset]) -> list[str]:
    """The warnings in the result of `check_policy`, or about policies themselves, each a sentence after a name."""
    if not isinstance(report, xr.Dataset) or {"q", "log_probability"} & set(report.variables):
        report = check_policy(report)
    found = []
    report = expect(report, "policy_check", "report").transpose("policy", "check")
    for i in range(report.sizes["policy"]):
        name = " ".join(str(report[dim].values[i]) for dim in STACKED_DIMS if dim in report.coords) or f"policy {i}"
        found += [f"{name}: {text}" for text in report["warning"].values[i].tolist() if text]
    return found


class _Finding(NamedTuple):
    warning: str = ""
    numbers: dict[str, float] = {}  # noqa: RUF012  (never changed)


def _each(policies: xr.Dataset | Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
    """Single policies and records, one by one."""
    if not isinstance(policies, xr.Dataset):
        if isinstance(policies, str) or not isinstance(policies, Iterable):
            raise InputError(f"policies is a {type(policies).__name__}: expected xarray.Datasets")
        for one in policies:
            yield from _each(one)
    elif "q" in policies or "log_probability" not in policies:
        yield from each_policy(policies)
    else:
        stacked = [dim for dim in STACKED_DIMS if dim in policies["log_probability"].dims]
        for index in np.ndindex(*(policies.sizes[dim] for dim in stacked)):
            yield policies.isel(dict(zip(stacked, index, strict=True)))


def _filter(policy: xr.Dataset) -> _Finding:
    if "q" not in policy:
        return _Finding()
    q, n_orders = policy["q"].values, _n_orders(policy)
    gap = find_gap(q)
    numbers = {"gap_edge": gap.edge, "gap_log10_p": gap.log10_p}
    warning = ""
    if gap.log10_p < IMPROBABLE:
        # The least that p leaves of one of two words is 1 - p, and the W - 1 words after the first may share that.
        numbers["top_p"] = 1 - n_orders * (q.shape[-1] - 1) * gap.edge
        warning = (
            f"{gap.zeros} of {q.size} probabilities are below 1e-12 and no other is below {gap.edge:.3g} (without a "
            f"filter a chance of 1e{gap.log10_p:.0f}), as after a nucleus filter with top-p "
            f"{'' if q.shape[-1] == 2 else 'of at least '}{max(0, numbers['top_p']):.3f} in each of {n_orders} orders."
        )
    elif gap.zeros and multiples(q, n_orders):
        warning = (
            f"all probabilities are multiples of 1/{n_orders}, as if in each of {n_orders} orders the most probable "
            "word were certain (temperature 0, or top-k 1)."
        )
    declared = any(policy.attrs.get(f"option_{name}", "none") != "none" for name in ("top_k", "top_p"))
    return _Finding("" if declared else warning, numbers)


def _n_orders(policy: xr.Dataset) -> int:
    """Over how many presentation orders the policy is an average, by its record or else by convention."""
    if policy.attrs.get("option_order", "none") != "none":
        return 1
    return policy.sizes.get("order", default_number(policy.sizes["word"]))


def _mass(policy: xr.Dataset, least: float) -> _Finding:
    if "captured_mass" not in policy:
        return _Finding()
    mass = policy["captured_mass"].values
    if "log_probability" in policy:
        log_p, censored = _measured(policy)
        mass = np.exp(np.where(censored, -np.inf, log_p)).sum(-1)
    low, median = int((mass < least).sum()), float(np.median(mass))
    warning = (
        f"in {low} of {mass.size} prompts the words together have a probability below {least:g} (median {median:.2g}, "
        f"lowest {mass.min():.2g}): the model would rather say something else."
    )
    return _Finding(warning if low else "", {"lowest_mass": float(mass.min()), "median_mass": median})


def _order_effect(policy: xr.Dataset) -> _Finding:
    if "log_probability" not in policy or policy.sizes["order"] < 2:
        return _Finding()
    log_p, censored = _measured(policy)
    known = (np.isfinite(log_p) & ~censored).all((0, 2))
    if not known.any():
        return _Finding()
    centred = log_p[:, known] - log_p[:, known].mean(-1, keepdims=True)
    average = centred.mean(0)
    order, word = (float(np.sqrt((part**2).mean())) for part in (centred - average, average))
    warning = (
        f"the order in which words are presented changes their log-probabilities by {order:.2g} (r.m.s.), more than "
        f"words and memory do ({word:.2g})."
    )
    return _Finding(warning if order > word else "", {"order_effect": order, "word_effect": word})


def _censored(policy: xr.Dataset) -> _Finding:
    if "log_probability" not in policy:
        return _Finding()
    censored = _measured(policy)[1]
    warning = (
        f"{censored.sum()} of {censored.size} log-probabilities are upper bounds only, in {censored.any(-1).sum()} of "
        f"{censored[..., 0].size} prompts: the model's interface did not list the word."
    )
    return _Finding(warning if censored.any() else "", {"censored_fraction": float(censored.mean())})


def _measured(policy: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities and whether they are censored, shape (order, state, word)."""
    log_p = policy["log_probability"].transpose("order", "state", "word")
    if "censored" not in policy:
        return log_p.values, np.zeros(log_p.shape, dtype=bool)
    return log_p.values, policy["censored"].transpose(*log_p.dims).values.astype(bool)
