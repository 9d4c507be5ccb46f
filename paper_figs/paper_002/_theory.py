"""Computations for several figures of [002]: fits of both mechanisms, and teams by their rewrites."""

from __future__ import annotations

import xarray as xr

import theory
from paper_figs._study import Study, digest
from theory.flag_game import mechanism2
from validation.flag_game import compare_composition, predict_composition

MODELS = ("gpt-4o", "gpt-5.4")
UPTAKES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the sweeps, [002] Figs. 1c and 9
FEWEST_RUNS = 1000  # with fewer the fit of Mechanism 1 gives a warning
FIT_RUNS = 4000  # as in [002] Appendix E
TRIALS = 1000


def mechanism1_fit(study: Study) -> xr.Dataset:
    """Mechanism 1 fitted to the sweep of GPT-4o over N."""
    table, runs = study.flag_game("population_scaling_gpt4o"), max(FEWEST_RUNS, study.runs(FIT_RUNS))
    options = {"runs": runs, "bootstrap": 0}
    return study.kept(
        "mechanism1_fit",
        lambda: theory.fit_mechanism1(table, seed=study.seed, progress=study.progress, **options),
        None,
        table=digest(table),
        **options,
    )


def mechanism2_fit(study: Study) -> xr.Dataset:
    """Mechanism 2 fitted to the memory-conflict probe, with the similarity of countries."""
    table = study.flag_game("memory_conflict_probe")
    return study.kept(
        "mechanism2_fit",
        lambda: mechanism2.fit(table, similarity=None, progress=study.progress),
        None,
        table=digest(table),
    )


def rewrites(study: Study) -> dict[str, float]:
    """γ of each model in messages with reasons, where a crop leaves several countries."""
    gamma = mechanism2_fit(study)["rewrite"].sel(evidence="weak", bandwidth=3)
    return {model: float(gamma.sel(model=model)) for model in MODELS}


def teams(study: Study) -> xr.Dataset:
    """Broadcasting teams of both models by composition and uptake: predicted from their rewrites, and measured."""
    measured, gamma = study.flag_game("broadcast_alpha_composition"), rewrites(study)
    options = {"uptake": list(UPTAKES), "runs": study.runs(TRIALS)}
    predicted = study.kept(
        "teams",
        lambda: predict_composition(gamma, seed=study.seed, progress=study.progress, **options),
        None,
        rewrite=gamma,
        **options,
    )
    return compare_composition(predicted, measured)
