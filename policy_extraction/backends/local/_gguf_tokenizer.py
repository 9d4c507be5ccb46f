"""Tokenizers that transformers reads from GGUF files otherwise than the model was trained with.

A GGUF file names how text is cut up before its pairs of bytes are merged (`tokenizer.ggml.pre`). Releases of
transformers up to 5.23 do not look at it for 'smollm', which sets digits apart: without that the empty line before a
number, ĊĊ, falls into two tokens that the model never saw there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SETS_DIGITS_APART = frozenset({"smollm"})


def mend_tokenizer(tokenizer: Any, gguf: Path) -> Any:
    """The tokenizer that was read from the file `gguf`, with digits set apart where the file says so."""
    from gguf import GGUFReader
    from tokenizers import pre_tokenizers

    field = GGUFReader(gguf).fields.get("tokenizer.ggml.pre")
    if field is not None and field.contents() in SETS_DIGITS_APART:
        backend = tokenizer.backend_tokenizer
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), backend.pre_tokenizer]
        )
    return tokenizer
