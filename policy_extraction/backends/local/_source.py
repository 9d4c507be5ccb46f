"""The place and identity of a model, found without loading it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from meanfield import InputError
from meanfield.toolbox import instance, path_of
from policy_extraction.backends.local import _embedded
from policy_extraction.backends.local._libraries import require_libraries

SMOLLM2 = _embedded.NAME
HUB_TIMEOUT = 10.0  # seconds


@dataclass(frozen=True)
class Source:
    """A model that can be loaded."""

    name: str  # for people and for the coordinate `model`
    identity: str  # key of the cache; changes with weights and tokenizer
    location: str  # a folder, or the name of a hub repository
    gguf_file: str | None = None  # file in `location`, for weights in GGUF format
    revision: str | None = None  # commit of the hub repository
    offline: bool = True  # read local files only


def find(model: str | Path, gguf_file: str | None = None) -> Source:
    """The embedded model, a local folder, a GGUF file, or a repository of the Hugging Face hub.

    Raises InputError if there is no such model, or the hub can't be reached and the model is not downloaded yet.
    """
    if gguf_file is not None:
        instance("gguf_file", gguf_file, str)
    elif model == SMOLLM2:
        path = _embedded.gguf_path()
        return Source(SMOLLM2, f"{SMOLLM2} sha256:{_embedded.sha256(path)}", str(path.parent), path.name)
    if str(model).startswith(("http://", "https://")):
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
    if _is_path(str(model)):
        raise InputError(f"model = {model}: there is no such file or folder")
    return _hub(str(model), gguf_file)


def _is_path(model: str) -> bool:
    return model.startswith((".", "~", "/")) or "\\" in model or model.count("/") > 1 or model.endswith(".gguf")


def _local(folder: Path, gguf_file: str | None) -> Source:
    needed = gguf_file or "config.json"
    if not (folder / needed).is_file():
        raise InputError(f"model = {folder}: there is no file {needed} in this folder")
    if gguf_file:
        return Source(Path(gguf_file).stem, _fingerprint([folder / gguf_file]), str(folder), gguf_file)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return Source(folder.name, _fingerprint(files), str(folder))


def _fingerprint(files: list[Path]) -> str:
    """A hash of names, sizes and times; weights can have hundreds of GB."""
    parts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return f"files:{hashlib.sha256(repr(parts).encode()).hexdigest()}"


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
        commit, offline = _commit_of(Path(downloaded)), True
    return Source(name, f"hub:{name}@{commit}/{gguf_file or ''}", name, gguf_file, commit, offline)


def _commit_of(downloaded: Path) -> str:
    """The COMMIT in …/snapshots/COMMIT/FILE, where the hub client keeps files."""
    parts = downloaded.parts
    return parts[len(parts) - parts[::-1].index("snapshots")]
