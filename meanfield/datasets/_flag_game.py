"""Outcomes of the Flag Game in groups of language models, and answers of single ones ([002])."""

from __future__ import annotations

import os
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from meanfield.datasets._fetch import download, find_local
from meanfield.toolbox._arguments import one_of
from meanfield.toolbox._csv import check_columns, read_csv
from meanfield.toolbox._errors import InputError

REPOSITORY = "https://github.com/lizardp1/flag_game/raw"
EXPORTS = "paper/final_charts/paper/exports/data"
EXPORTED = "e12664c9698ceb82ea1ba7b34e8bf8b0e5041a85"  # commits
PROBED = "48421b24d883d97aa9676273e53c99dcca7e48fe"


class _Table(NamedTuple):
    """The required columns, and the place of the file upstream; '' for a file that comes with the package."""

    columns: str  # with spaces between
    commit: str = ""
    upstream: str = ""
    sha256: str = ""
    rows: tuple[str, str] | None = None  # only those with this value in this column


TABLES = {
    "flag_pool": _Table(
        "country orientation stripes triangle",
    ),
    "population_scaling_gpt4o": _Table(
        "condition N seeds initial_mean final_mean final_ci_low final_ci_high correct_consensus_count "
        "wrong_consensus_count polarization_count fragmentation_count",
        "7c4eec26b63ec43a88c59b272afeb5eafc2538b2",
        "paper/figures/data/flag_game_pairwise_n_scaling_main_v3_summary.csv",
        "965b9d0becf773885ec99bc8939aea2654f738b2bb80d775b613f3cf155ee9a3",
        ("condition", "all_gpt_4o"),
    ),
    "yemen_crop_probe": _Table(
        "left top width height truth_count rival_count B_valid",
        "97152f429be91f8bf68101c6948380cc694d7a7f",
        "theory/data/yemen_crops.csv",
        "ff94e5a0fe1b778a54df9ba2364a3940c9116242b22854be73814e17a319ed34",
    ),
    "pairwise_alpha": _Table(
        "model alpha n_trials initial_mean final_mean final_mean_ci_low final_mean_ci_high",
        EXPORTED,
        f"{EXPORTS}/flag_game_pairwise_alpha_main_candidate_summary.csv",
        "7df52681d5eea9fcefe3b3da703991c3e9a7088efcb9d2cb5589f1b28619cc12",
    ),
    "broadcast_alpha_composition": _Table(
        "alpha gpt54_count n_trials initial_accuracy_mean final_accuracy_mean",
        EXPORTED,
        "paper/final_charts/poster/exports/support_visuals/flag_broadcast_alpha_mix_N8_m3_summary.csv",
        "e540e25563fda200df956a6a48752e6b346600f2cb86147a8978bbaa6c44b13a",
    ),
    "protocols_n8": _Table(
        "protocol condition_name observer_group n_trials initial_accuracy_mean final_accuracy_mean final_accuracy_sem",
        EXPORTED,
        f"{EXPORTS}/flag_gam_protocol_side_by_side_N8_final_ranked_performance.csv",
        "4484a8f27891cc3bb288efb4740971605aec97afaba400322e48b0f96e06680d",
    ),
    "memory_conflict_probe": _Table(
        "model m private_evidence_strength social_evidence_relation target_memory_entries "
        "social_memory_entries n_trials private_evidence_count social_evidence_count "
        "other_private_compatible_count other_incompatible_count",
        EXPORTED,
        f"{EXPORTS}/flag_game_memory_conflict_probe_alignment_summary.csv",
        "d5906d25b8662f7b82837c1f923580c19047bff27e340c5444fbfbb4ea899714",
    ),
    "crop_probe_counts": _Table(
        "run_id N seed agent_id truth rival rival_source context_id top left height width B_valid truth_count "
        "rival_count outcome",
        PROBED,
        "theory/data/crop_probe_counts.csv",
        "4f52f0631e433f8111b1a903d60efa80dae52b6813712ff79d3e3dd7df4e7ffa",
    ),
    "main_sweep_endpoints": _Table(
        "run_id N seed seed_name truth accuracy outcome top_country top_share second_country second_share "
        "final_time final_interactions_per_agent",
        PROBED,
        "theory/data/main_sweep_endpoints.csv",
        "ab8b004c600962f95fb4e88fed0c6f6dce5bf177cd17cfd1c285a52a5a3c13a8",
    ),
}


def flag_game(table: str, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """A table of the measurements published with [002].

    Parameters
    ----------
    table
        Which one:

        - "flag_pool": the 28 flags; stripes from the top (horizontal) or from the hoist (vertical), '' for no triangle;
        - "population_scaling_gpt4o": pairwise runs of GPT-4o by N, counts of endpoints and accuracies (Fig. 3 and 5),
          the rows `all_gpt_4o` of the published file;
        - "yemen_crop_probe": 128 crops of Yemen's flag, each shown to GPT-4o 50 times, with the answers restricted to
          Yemen (truth) and Austria (rival); for `theory.flag_game.probe_counts`;
        - "pairwise_alpha" (Fig. 9), "broadcast_alpha_composition" (Fig. 1c and 4a) and "protocols_n8" (Fig. 2b):
          accuracies by social uptake, team and protocol;
        - "memory_conflict_probe": answers of single agents by the content of their memory (Fig. 6 and 8);
        - "crop_probe_counts": answers to the crop of each agent of each run, restricted to the truth and a rival;
        - "main_sweep_endpoints": the end of each run of the pairwise sweep.
    path
        The file, a folder that holds TABLE.csv or `flag_game/` with it, or a clone of the upstream repository (GitHub,
        lizardp1/flag_game). Such a file is used as it is. Default: the folder in the environment variable
        MEANFIELD_DATA, then the cache, then a download of a fixed commit with a known SHA-256. "flag_pool" comes with
        the package.

    Returns
    -------
    DataFrame with the columns of the file; missing numbers are NaN.

    Raises
    ------
    InputError
        If there is no such table, the file is not found, a download differs from the published file (SHA-256), the file
        is not a CSV file of at most 16 MiB, or a required column is missing.

    See Also
    --------
    theory.fit_mechanism1 : takes the tables of endpoints

    Examples
    --------
    >>> flags = meanfield.datasets.flag_game("flag_pool")
    >>> flags[flags["triangle"] != ""]
               country orientation                       stripes triangle
    24         Bahamas  horizontal  light_blue yellow light_blue    black
    25  Czech Republic  horizontal                     white red     blue
    26       Palestine  horizontal             black white green      red
    27           Sudan  horizontal               red white black    green
    """
    one_of("table", table, TABLES)
    known, name = TABLES[table], f"{table}.csv"
    if table == "flag_pool" and path is None:  # 28 stripe and triangle flags of Appendix C
        with as_file(files("meanfield.datasets") / name) as found:
            return _read(found, table)
    found = find_local("flag_game", name, path, known.upstream)
    return _read(found or download(name, f"{REPOSITORY}/{known.commit}/{known.upstream}", known.sha256), table)


def _read(file: Path, table: str) -> pd.DataFrame:
    known, read = TABLES[table], read_csv(file)
    check_columns(str(file), read, known.columns.split())
    if table == "flag_pool":
        read["triangle"] = read["triangle"].fillna("")  # no triangle, and no missing number
    if known.rows is not None:
        column, value = known.rows
        read = read.loc[read[column] == value, :].reset_index(drop=True)
        if read.empty:
            raise InputError(f"{file}: has no row with {column} = {value}")
    return read
