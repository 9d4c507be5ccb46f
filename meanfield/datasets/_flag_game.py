"""What groups of language models did in the Flag Game, and how single ones answered ([002])."""

from __future__ import annotations

import os
from typing import NamedTuple

import pandas as pd

from meanfield._csv import read_csv
from meanfield._errors import InputError
from meanfield.datasets._fetch import download, find_local

REPOSITORY = "https://github.com/lizardp1/flag_game/raw/HEAD"


class _Table(NamedTuple):
    """The hash of the file, and the columns that its readers need."""

    sha256: str
    columns: tuple[str, ...]


TABLES = {
    "flag_pool": _Table(
        "8375499e50cb689dde7a77bf2b94c8f5ca7f6206ae21cf84e5834852c32beb98",
        ("country", "orientation", "stripes", "triangle"),
    ),
    "population_scaling_gpt4o": _Table(
        "02c958a9d7c58ca03f10bb5859f50a923919fa643dc028b4764197046cff3ea5",
        (
            "condition",
            "N",
            "seeds",
            "initial_mean",
            "final_mean",
            "final_ci_low",
            "final_ci_high",
            "correct_consensus_count",
            "wrong_consensus_count",
            "polarization_count",
            "fragmentation_count",
        ),
    ),
    "yemen_crop_probe": _Table(
        "ff94e5a0fe1b778a54df9ba2364a3940c9116242b22854be73814e17a319ed34",
        ("left", "top", "width", "height", "truth_count", "rival_count", "B_valid"),
    ),
    "pairwise_alpha": _Table(
        "7df52681d5eea9fcefe3b3da703991c3e9a7088efcb9d2cb5589f1b28619cc12",
        ("model", "alpha", "n_trials", "initial_mean", "final_mean", "final_mean_ci_low", "final_mean_ci_high"),
    ),
    "broadcast_alpha_composition": _Table(
        "e540e25563fda200df956a6a48752e6b346600f2cb86147a8978bbaa6c44b13a",
        ("alpha", "gpt54_count", "n_trials", "initial_accuracy_mean", "final_accuracy_mean"),
    ),
    "protocols_n8": _Table(
        "4484a8f27891cc3bb288efb4740971605aec97afaba400322e48b0f96e06680d",
        (
            "protocol",
            "condition_name",
            "observer_group",
            "n_trials",
            "initial_accuracy_mean",
            "final_accuracy_mean",
            "final_accuracy_sem",
        ),
    ),
    "memory_conflict_probe": _Table(
        "d5906d25b8662f7b82837c1f923580c19047bff27e340c5444fbfbb4ea899714",
        (
            "model",
            "m",
            "private_evidence_strength",
            "social_evidence_relation",
            "target_memory_entries",
            "social_memory_entries",
            "n_trials",
            "private_evidence_count",
            "social_evidence_count",
            "other_private_compatible_count",
            "other_incompatible_count",
        ),
    ),
}


def flag_game(table: str, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """A table of the measurements published with [002].

    Parameters
    ----------
    table
        Which one:

        - "flag_pool": the 28 flags; stripes from the top (horizontal) or from the hoist (vertical), '' for no triangle;
        - "population_scaling_gpt4o": pairwise runs of GPT-4o by N, counts of endpoints and accuracies (Fig. 3 and 5);
        - "yemen_crop_probe": 128 crops of Yemen's flag, each shown to GPT-4o 50 times, the answers being restricted to
          Yemen (truth) and Austria (rival); `theory.flag_game.probe_counts` takes it;
        - "pairwise_alpha" (Fig. 9), "broadcast_alpha_composition" (Fig. 1c and 4a) and "protocols_n8" (Fig. 2b):
          accuracies by social uptake, team and protocol;
        - "memory_conflict_probe": answers of single agents by what their memory holds (Fig. 6 and 8).
    path
        The file, or a folder that holds it (or `flag_game/` with it). Without it the folder in MEANFIELD_DATA is looked
        up, then the cache, then the upstream repository (GitHub, lizardp1/flag_game) is asked. Where in it the files
        lie has not been verified: they are looked for at its root. What is downloaded is taken only if its hash is that
        of the published file; where the download fails, give the file or its folder. A file of your own is taken as it
        is.

    Returns
    -------
    DataFrame with the columns of the file; numbers that are not there are NaN.

    Raises
    ------
    InputError
        If there is no such table, the file is not found, a download is not what was published (SHA-256), the file is no
        CSV file of at most 16 MiB, or a column is missing.
    """
    if table not in TABLES:
        raise InputError(f"table = {table!r}: expected one of {', '.join(TABLES)}")
    name, known = f"{table}.csv", TABLES[table]
    found = find_local("flag_game", name, path) or download(name, f"{REPOSITORY}/{name}", known.sha256)
    read = read_csv(found)
    if table == "flag_pool" and "triangle" in read:
        read["triangle"] = read["triangle"].fillna("")  # no triangle, and no missing number
    missing = [column for column in known.columns if column not in read.columns]
    if missing:
        raise InputError(f"{found}: lacks the column {', '.join(missing)}; expected {', '.join(known.columns)}")
    return read
