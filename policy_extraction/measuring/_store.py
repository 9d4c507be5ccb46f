"""What was measured so far of a record, on disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import zarr
from tqdm.auto import tqdm
from zarr.codecs import BytesCodec, Crc32cCodec

from meanfield import ModelError, StorageError
from policy_extraction.backends._backend import Backend, Scores
from policy_extraction.measuring._sampling import check_log_probabilities
from policy_extraction.prompts._template import Prompt

PROMPTS_A_FILE = 1024
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)  # what Zarr makes of it
WRITING_SHARE = 0.25  # of the time at most; portions that come faster are collected


class Measured:
    """Log-probabilities prompt by prompt, which outlive the process that measured them.

    Files are written whole or not at all, and a prompt counts as measured from the moment on at which its
    log-probabilities are on disk. Portions that come faster than they can be written wait for the next write.

    Of two processes on one folder each measures all that it did not find; one may overwrite with NaN what the other
    measured, which is then measured again, but a log-probability never gets the flag of another one. A folder that is
    removed meanwhile, as by the process that ends first, is made anew by the next write, for what comes after.

    Parameters
    ----------
    folder
        A Zarr array, made with the first portion where it is missing; None to keep nothing.
    n_prompts, n_words
        Shape of the record. An array of another shape, or a damaged one, is replaced.

    Attributes
    ----------
    log_probability
        Shape (prompts, words), NaN where nothing is known yet.
    censored
        Shape (prompts, words).

    Raises
    ------
    StorageError
        If the folder can't be read or written, here or later; what it holds is left as it is.
    """

    def __init__(self, folder: Path | None, n_prompts: int, n_words: int) -> None:
        self.log_probability = np.full((n_prompts, n_words), np.nan)
        self.censored = np.zeros((n_prompts, n_words), dtype=bool)
        self._folder = folder
        self._unwritten: set[int] = set()
        self._rest_until = 0.0
        if folder is not None:
            self._read(folder)

    @property
    def missing(self) -> np.ndarray:
        """Numbers of the prompts that are still to be asked."""
        return np.flatnonzero(np.isnan(self.log_probability).any(axis=1))

    def complete(self, backend: Backend, prompts: Sequence[Prompt], words: Sequence[str], bar: tqdm) -> None:
        """Ask what is missing of all `prompts`; ModelError if the back end leaves some without an answer."""
        missing = self.missing
        bar.update(len(prompts) - len(missing))
        try:
            for scores in backend.score([prompts[number] for number in missing], words):
                self.add(replace(scores, numbers=missing[scores.numbers]))
                bar.update(len(scores.numbers))
        finally:
            self.write()
        if len(self.missing):
            raise ModelError(f"model = {backend.name}: it left {len(self.missing)} prompts without an answer")

    def add(self, scores: Scores) -> None:
        """Take in a portion; ModelError if no policy can be made of it, before it is kept for good."""
        if np.isnan(scores.log_probability).any():
            raise ModelError("model: it returned log-probabilities that are not numbers (NaN)")
        check_log_probabilities(scores.log_probability)
        self.log_probability[scores.numbers] = scores.log_probability
        self.censored[scores.numbers] = scores.censored
        self._unwritten.update((scores.numbers // PROMPTS_A_FILE).tolist())
        if time.monotonic() >= self._rest_until:
            self.write()

    def write(self) -> None:
        """Write what is not on disk yet."""
        begin = time.monotonic()
        if self._folder is not None and self._unwritten:
            self._write(self._folder)
        end = time.monotonic()
        self._rest_until = end + (end - begin) / WRITING_SHARE

    def remove(self) -> None:
        """Delete what is on disk."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, folder: Path) -> None:
        with _one_line(folder):
            try:
                found = np.asarray(zarr.open_array(folder, mode="r"))
                if found.shape == (*self.censored.shape, 2):
                    self.log_probability, self.censored = found[..., 0].copy(), found[..., 1] == 1
                    return
            except FileNotFoundError:
                return
            except DAMAGE:
                pass
            shutil.rmtree(folder)

    def _write(self, folder: Path) -> None:
        n_prompts, n_words = self.censored.shape
        with _one_line(folder):
            array = zarr.open_array(
                folder,
                mode="a",
                shape=(n_prompts, n_words, 2),  # a value and its flag are in one file, so that they belong together
                chunks=(PROMPTS_A_FILE, n_words, 2),
                dtype=float,
                fill_value=np.nan,
                codecs=[BytesCodec(), Crc32cCodec()],
            )
            for part in sorted(self._unwritten):
                rows = slice(part * PROMPTS_A_FILE, (part + 1) * PROMPTS_A_FILE)
                array[rows] = np.stack([self.log_probability[rows], self.censored[rows]], axis=-1)
            self._unwritten.clear()


@contextmanager
def _one_line(folder: Path) -> Iterator[None]:
    """What another process removes at this moment is no error; anything else that the disk refuses is an error."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageError(f"cache = {folder}: can't be read and written ({error.strerror})") from None
