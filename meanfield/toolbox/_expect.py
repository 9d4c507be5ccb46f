"""The kinds of results that functions accept, and the functions that make them."""

from __future__ import annotations

from typing import NamedTuple

import xarray as xr

from meanfield.toolbox._errors import InputError


class Kind(NamedTuple):
    """The function that makes such a result, and its variables and dims; without these attrs["kind"] identifies it."""

    maker: str
    needs: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()


KINDS = {
    "policy": Kind("meanfield.make_policy", ("q",)),
    "stability_table": Kind(
        "meanfield.stability_table", ("policy", "model", "pair", "row", "word", "word_share", "stability", "strong")
    ),
    "solution": Kind("meanfield.solve", ("word_share", "attractor", "time")),
    "measured": Kind("policy_extraction.measure", ("q", "asked", "state")),
    "record": Kind("policy_extraction.extract", ("log_probability",)),
    "variants": Kind("policy_extraction.measuring.prompt_variants", ("q",), ("variant",)),
    "policy_check": Kind("policy_extraction.check_policy", ("warning",)),
    "norm_probes": Kind("policy_extraction.norms.probe_operations", ("probability", "willing", "kind")),
    "comprehension": Kind("policy_extraction.checks.comprehension"),
    "generation_test": Kind("policy_extraction.checks.generation_test"),
    "memory_conflict": Kind("policy_extraction.flag_game.probe_memory_conflict"),
    "mechanism1_fit": Kind("theory.fit_mechanism1"),
    "flag_run_fit": Kind("theory.flag_game.evidence.fit"),
    "flag_run_forecast": Kind(
        "theory.flag_game.evidence.forecast", ("probability", "log_score", "brier"), ("model", "run")
    ),
    "simulation": Kind("validation.simulate", ("consensus_round", "consensus_word", "word", "n_agents")),
    "collective_bias": Kind("validation.collective_bias"),
    "comparison": Kind("validation.compare"),
    "empirical_policy": Kind("validation.populations.empirical_policy", ("alpha",)),
    "gossip": Kind("validation.flag_game.simulate_gossip", ("initial_report", "final_report", "truth")),
    "team_composition": Kind("validation.flag_game.predict_composition"),
}


def expect(dataset: object, kind: str, name: str) -> xr.Dataset:
    """`dataset` if it is a result of this kind; otherwise InputError names its maker and the mistake."""
    maker, needs, dims = KINDS[kind]
    if not isinstance(dataset, xr.Dataset):
        wrong = f"it is a {type(dataset).__name__}"
        if hasattr(dataset, "choice_counts"):
            wrong += "; validation.populations.empirical_policy makes one of its choice_counts"
    elif needs:
        missing = [one for one in needs if one not in dataset.variables and one not in dataset.dims]
        missing += [one for one in dims if one not in dataset.dims]
        wrong = f"{missing[0]!r} is missing" if missing else ""
    else:
        found = dataset.attrs.get("kind")
        wrong = "" if found == kind else f"attrs['kind'] = {found!r}"
    if wrong:
        raise InputError(f"{name}: expected the result of {maker}, but {wrong}")
    return dataset  # type: ignore[return-value]
