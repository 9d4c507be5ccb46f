"""Loading a language model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from meanfield import InputError, cache_folder
from policy_extraction._toolbox.folders import folder_once
from policy_extraction.backends.local._source import SMOLLM2, Source, require_libraries

COPY = 2  # version of the copy's making
# A GGUF file names how text is split before pairs of bytes are merged (`tokenizer.ggml.pre`). Releases of transformers
# up to 5.23 ignore it for these: the empty line before a number, ĊĊ, then becomes two tokens that the model never saw.
SETS_DIGITS_APART = frozenset({"smollm"})


def transformers(module: str = "") -> Any:
    """The library or a module of it, untyped: its types, which name all models, would double the time of pyright."""
    return import_module(f"transformers.{module}".removesuffix("."))


class LanguageModel(NamedTuple):
    """A causal language model of transformers and its tokenizer."""

    model: Any
    tokenizer: Any


def dtype_name(dtype: object, device_map: object) -> str:
    """The number format to load; by default 'float32' on the CPU and the checkpoint's own elsewhere."""
    if dtype is None:
        return "float32" if device_map in (None, "cpu") else "auto"
    return str(dtype).removeprefix("torch.")


def load(source: Source, dtype: str, device_map: Any = None, quantization_config: Any = None) -> LanguageModel:
    """The model at `source`, ready to run; the options go to transformers' `from_pretrained`.

    Raises InputError if `dtype` is no floating-point type of PyTorch, or transformers can't load the model.
    """
    require_libraries()
    import torch

    found = getattr(torch, dtype, None)
    if dtype != "auto" and not (isinstance(found, torch.dtype) and found.is_floating_point):
        raise InputError(f"dtype = {dtype}: expected float32, bfloat16, float16, float64 or auto")
    if _is_embedded(source):
        source = _unpacked(source)
    with _loading(source):
        model, tokenizer = _from_pretrained(source, dtype, device_map, quantization_config)
    return LanguageModel(model.eval(), tokenizer)


def load_tokenizer(source: Source) -> Any:
    """The tokenizer of the model at `source`, without its weights; InputError if transformers can't load it."""
    require_libraries()
    if _is_embedded(source) and (folder := _copy_of(source)).is_dir():
        source = Source(source.name, source.identity, str(folder))
    with _loading(source):
        return _tokenizer(source)


def _is_embedded(source: Source) -> bool:
    return source.name == SMOLLM2 and source.identity.startswith(SMOLLM2)


@contextmanager
def _loading(source: Source) -> Iterator[None]:
    """Load in this block, without progress bars and with errors in one line."""
    try:
        with _quiet():
            yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"model = {source.location}: transformers can't load it ({reason})") from error


def _from_pretrained(source: Source, dtype: str, device_map: Any, quantization_config: Any) -> tuple[Any, Any]:
    library = transformers()
    weights: dict[str, Any] = {"dtype": dtype, "device_map": device_map}
    if quantization_config is not None:
        weights["quantization_config"] = quantization_config
    # Releases without GgufConfig always unpack the weights.
    elif source.gguf_file and hasattr(library, "GgufConfig"):
        weights["quantization_config"] = library.GgufConfig(dequantize=True)
    tokenizer = _tokenizer(source)
    return library.AutoModelForCausalLM.from_pretrained(source.location, **_where(source), **weights), tokenizer


def _tokenizer(source: Source) -> Any:
    tokenizer = transformers().AutoTokenizer.from_pretrained(source.location, **_where(source))
    if not source.gguf_file:
        return tokenizer
    from gguf import GGUFReader
    from tokenizers.pre_tokenizers import Digits
    from tokenizers.pre_tokenizers import Sequence as InTurn

    cached_file, revision = transformers("utils.hub").cached_file, _where(source)["revision"]
    path = cached_file(source.location, source.gguf_file, revision=revision, local_files_only=True)
    splits = GGUFReader(Path(str(path))).fields.get("tokenizer.ggml.pre")
    if splits is not None and splits.contents() in SETS_DIGITS_APART:
        backend = tokenizer.backend_tokenizer
        backend.pre_tokenizer = InTurn([Digits(individual_digits=True), backend.pre_tokenizer])
    return tokenizer


def _where(source: Source) -> dict[str, Any]:
    where: dict[str, Any] = {"revision": source.revision or "main", "local_files_only": source.offline}
    return where | ({"gguf_file": source.gguf_file} if source.gguf_file else {})


def _unpacked(source: Source) -> Source:
    """A copy in safetensors format, as unpacking takes seconds; the GGUF file itself if none can be written."""
    folder = _copy_of(source)

    def fill(temporary: Path) -> None:
        model, tokenizer = _from_pretrained(source, "float32", None, None)
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)

    if not folder.is_dir():
        with suppress(OSError), _quiet():
            folder_once(folder, fill)
    return Source(source.name, source.identity, str(folder)) if folder.is_dir() else source


def _copy_of(source: Source) -> Path:
    return cache_folder() / "models" / f"{source.identity.replace(' ', '-').replace(':', '-')}-{COPY}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress bars of transformers, which say nothing about the extraction."""
    logging = transformers("utils").logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown and not os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS"):
            logging.enable_progress_bar()
