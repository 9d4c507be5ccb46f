"""What was measured so far of a record, on disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from tqdm.auto import tqdm

from meanfield import InputError
from policy_extraction._backend import Backend, Scores
from policy_extraction._sampling import check_log_probabilities
from policy_extraction._template import Prompt

PROMPTS_A_FILE = 1024
WRITING_SHARE = 0.25  # of the time at most; portions that come faster are collected


class Measured:
    """Log-probabilities prompt by prompt, which outlive the process that measured them.

    Files are written whole or not at all, and a prompt counts as measured from the moment on at which its
    log-probabilities are on disk. Portions that come faster than they can be written wait for the next write.

    Parameters
    ----------
    folder
        A Zarr group, made where it is missing; None to keep nothing.
    n_prompts, n_words
        Shape of the record. A group of another shape, or a damaged one, is replaced.

    Attributes
    ----------
    log_probability
        Shape (prompts, words), NaN where nothing is known yet.
    censored
        Shape (prompts, words).
    """

    def __init__(self, folder: Path | None, n_prompts: int, n_words: int) -> None:
        self.log_probability = np.full((n_prompts, n_words), np.nan)
        self.censored = np.zeros((n_prompts, n_words), dtype=bool)
        self._folder = folder
        self._unwritten: set[int] = set()
        self._rest_until = 0.0
        self._group = None if folder is None else self._open(folder)

    @property
    def missing(self) -> np.ndarray:
        """Numbers of the prompts that are still to be asked."""
        return np.flatnonzero(np.isnan(self.log_probability).any(axis=1))

    def complete(self, backend: Backend, prompts: Sequence[Prompt], words: Sequence[str], bar: tqdm) -> None:
        """Ask what is missing of all `prompts`; InputError if the back end leaves some without an answer."""
        missing = self.missing
        bar.update(len(prompts) - len(missing))
        try:
            for scores in backend.score([prompts[number] for number in missing], words):
                self.add(replace(scores, numbers=missing[scores.numbers]))
                bar.update(len(scores.numbers))
        finally:
            self.write()
        if len(self.missing):
            raise InputError(f"model = {backend.name}: it left {len(self.missing)} prompts without an answer")

    def add(self, scores: Scores) -> None:
        """Take in a portion; InputError if no policy can be made of it, before it is kept for good."""
        if np.isnan(scores.log_probability).any():
            raise InputError("model: it returned log-probabilities that are not numbers (NaN)")
        check_log_probabilities(scores.log_probability)
        self.log_probability[scores.numbers] = scores.log_probability
        self.censored[scores.numbers] = scores.censored
        self._unwritten.update((scores.numbers // PROMPTS_A_FILE).tolist())
        if time.monotonic() >= self._rest_until:
            self.write()

    def write(self) -> None:
        """Write what is not on disk yet."""
        begin = time.monotonic()
        if self._group is not None:
            for name in ("censored", "log_probability"):  # the latter is what counts, so it comes last
                for part in sorted(self._unwritten):
                    rows = slice(part * PROMPTS_A_FILE, (part + 1) * PROMPTS_A_FILE)
                    self._group[name][rows] = getattr(self, name)[rows]
        self._unwritten.clear()
        end = time.monotonic()
        self._rest_until = end + (end - begin) / WRITING_SHARE

    def remove(self) -> None:
        """Delete what is on disk."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self, folder: Path) -> Any:
        # What a killed process or another version of Zarr left may fail in any way; it is measured anew.
        with suppress(Exception):
            group = zarr.open_group(folder, mode="r+")
            found = {name: np.asarray(group[name]) for name in ("log_probability", "censored")}
            if all(array.shape == self.censored.shape for array in found.values()):
                self.log_probability, self.censored = found["log_probability"], found["censored"]
                return group
        shutil.rmtree(folder, ignore_errors=True)
        group = zarr.open_group(folder, mode="w")
        chunks = (PROMPTS_A_FILE, self.censored.shape[1])
        group.create_array("censored", data=self.censored, chunks=chunks)
        group.create_array("log_probability", data=self.log_probability, chunks=chunks, fill_value=np.nan)
        return group
