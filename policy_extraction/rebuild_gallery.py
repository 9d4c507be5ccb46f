"""Measure the policies of `meanfield.datasets.smollm2` again and compare.

`python -m policy_extraction.rebuild_gallery` asks 2,730 prompts for each of eleven pairs, about five minutes a pair on
two cores. `--pair his/her` measures one pair, and `--write` replaces the bundled file. An interrupted run goes on where
it stopped. The exit status is 1 if a probability differs by more than 1e-5.
"""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import xarray as xr

from meanfield import MeanfieldError, cache_folder, datasets, save
from policy_extraction.backends.local import SMOLLM2
from policy_extraction.measuring._extract import extract
from policy_extraction.measuring._record import policy_from_record

FILE = Path(datasets.__file__).with_name("smollm2.nc")
MEMORY_LENGTH = 5
TOLERANCE = 1e-5
# The pairs of [004] Table S1, in its words.
PAIRS = (
    ("his", "her"),
    ("gay", "straight"),
    ("she", "he"),
    ("White", "Black"),
    ("more", "less"),
    ("young", "old"),
    ("African", "White"),
    ("Mexican", "American"),
    ("tall", "short"),
    ("woman", "man"),
    ("wife", "husband"),
)


def measured(pairs: Sequence[tuple[str, str]]) -> xr.Dataset:
    """The policies of these pairs, measured now or continued from an interrupted run with the same libraries."""
    libraries = "-".join(version(name) for name in ("torch", "transformers", "meanfield-llm"))
    folder = cache_folder() / "gallery" / libraries
    gallery = bundled(extract(SMOLLM2, words=pairs, memory_length=MEMORY_LENGTH, cache=folder, progress=True))
    shutil.rmtree(folder)
    return gallery


def bundled(policy: xr.Dataset) -> xr.Dataset:
    """The content of the file: log-probabilities rounded to float32, and the policy at T = 0.5 made of these."""
    rounded = policy["log_probability"].astype(np.float32)
    exact = policy.assign(log_probability=rounded.astype(np.float64))
    small = policy_from_record(exact).assign(log_probability=rounded)
    return small.drop_vars("captured_mass").drop_encoding()


def write(gallery: xr.Dataset, path: Path) -> None:
    """Write the file, whole or not at all."""
    numeric = [name for name, variable in gallery.data_vars.items() if variable.dtype.kind in "fb"]
    encoding = {name: {"zlib": True, "complevel": 9, "shuffle": True} for name in numeric}
    save(gallery, path, encoding)


def largest_difference(gallery: xr.Dataset, other: xr.Dataset) -> float:
    """max |Δq| over the pairs of `gallery`, states and words."""
    return float(np.abs(gallery["q"] - other["q"].sel(pair=gallery["pair"])).max())


def main(arguments: list[str] | None = None) -> int:
    """Measure, and compare or write; returns the exit status."""
    parser = ArgumentParser(prog="python -m policy_extraction.rebuild_gallery", description=__doc__)
    known = {"/".join(pair): pair for pair in PAIRS}
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="replace the bundled file")
    what.add_argument("--pair", choices=list(known), help="measure and compare this pair only")
    given = parser.parse_args(arguments)
    gallery = measured([known[given.pair]] if given.pair else PAIRS)
    if given.write:
        write(gallery, FILE)
        print(f"wrote {FILE}")
        return 0
    difference = largest_difference(gallery, datasets.smollm2())
    print(f"largest difference of a probability: {difference:.1e} (at most {TOLERANCE:.0e} is expected)")
    return int(difference > TOLERANCE)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MeanfieldError as error:
        sys.exit(f"{error}")
