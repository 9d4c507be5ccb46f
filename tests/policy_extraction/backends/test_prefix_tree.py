"""Log-probabilities from a tree of tokens, against one forward pass a prompt and against exhaustive enumeration.

Tolerances: log-probabilities of random float32 models agree to 2e-5, some hundred roundings of 1e-7.
"""

from __future__ import annotations

import itertools
import random
import time
import warnings
from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch", reason="language models need the extra llm")
pytest.importorskip("transformers", reason="language models need the extra llm")

import torch

from _prompt_files import SHORT
from _tiny_models import CHAT, LETTERS, OTHER, PLAIN, architecture, letter_tokenizer, random_model
from meanfield import InputError
from policy_extraction.backends.local import TransformersBackend, _attention, _passes, _transformers
from policy_extraction.backends.local._batches import batch_scores, repeatable
from policy_extraction.backends.local._memory_budget import GIB, MOST_TOKENS_CPU, Footprint, footprint
from policy_extraction.backends.local._packed import packed_linears
from policy_extraction.backends.local._parallel import AbandonedError, check_awaited, in_order
from policy_extraction.backends.local._passes import Beginning, Room, sequences_of, tree, tree_scores
from policy_extraction.backends.local._tokens import Question, disjoint, questions
from policy_extraction.backends.local._transformers import given
from policy_extraction.prompts import Payoffs
from policy_extraction.prompts._games import Game

ROUNDING = 2e-5


@cache
def asked(memory_length=2) -> list[Question]:
    """Questions about all memories in one order."""
    words = ("his", "her")
    backend = given(random_model(101), letter_tokenizer(chat=CHAT))
    return backend._questions(Game(words, [words], memory_length, SHORT, Payoffs()).prompts(), words)


def one_by_one(model, what) -> np.ndarray:
    return np.concatenate([batch_scores(model, [question], 1) for question in what])


def random_questions(seed: int) -> list[Question]:
    """Contexts and answers over an alphabet of three, of which many continue, repeat or begin like others."""
    rng = random.Random(seed)

    def some(shortest: int, longest: int) -> tuple[int, ...]:
        return tuple(rng.randrange(3) for _ in range(rng.randint(shortest, longest)))

    n_words = rng.randint(1, 4)
    return [
        Question(some(1, 6), tuple(dict.fromkeys(some(1, 4) for _ in range(20)))[:n_words])
        for _ in range(rng.randint(1, 30))
    ]


# --- the tree ------------------------------------------------------------------------------------------------------


def beginnings(what: list[Question]) -> set[tuple[int, ...]]:
    read = [q.context + answer[:-1] for q in what for answer in q.answers]
    return {sequence[:n] for sequence in read for n in range(1, len(sequence) + 1)}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_passes_hold_each_token_once_and_no_more_than_fit(seed, size):
    what = random_questions(seed)
    room = Room(size, 2)
    run, wanted = [], []

    def visit(branches, start: int, before: tuple[int, ...]) -> None:
        for one in _passes.passes(branches, start, room):
            assert len(one.tokens) <= size
            for row in one.rows:
                assert [one.positions[i] for i in row] == list(range(start, start + len(row)))
                assert all(row[:n] == other[:n] for other in one.rows for n in [len({*row} & {*other})])
            paths = [before + tuple(one.tokens[i] for i in row) for row in one.rows]
            run.extend({path[:n] for path in paths for n in range(start + 1, len(path) + 1)})
            assert len(one.tokens) == len({i for row in one.rows for i in row})
            wanted.extend(w for several in one.wanted.values() for w in several)
            for opened, tokens in one.opened:
                visit(opened, start + len(tokens), before + tuple(one.tokens[i] for i in tokens))

    visit(tree(what), 0, ())
    assert len(run) == len(set(run)) and set(run) == beginnings(what)
    steps = [(i, w, token) for i, q in enumerate(what) for w, answer in enumerate(q.answers) for token in answer]
    assert sorted((w.number, w.word, w.token) for w in wanted) == sorted(steps)


# --- against one prompt a forward pass -----------------------------------------------------------------------------


LONG = ("deepseek_v3",)


@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.slow if one in LONG else ()) for one in PLAIN])
def test_tree_equals_one_prompt_a_pass(name):
    what = asked()
    model = architecture(name, 101)
    plain = one_by_one(model, what)
    assert plain.std(0).min() > 0.1, "a model that does not read its memory shows nothing"
    assert given(model, letter_tokenizer(chat=CHAT))._tree_is_exact(what)
    for size in (16, 100_000):
        np.testing.assert_allclose(tree_scores(model, what, Room(size, 1)), plain, atol=ROUNDING)
    with packed_linears(model):
        np.testing.assert_allclose(tree_scores(model, what, Room(300, 1)), plain, atol=ROUNDING)


def test_a_beginning_is_read_once_and_its_numbers_depend_on_nothing_before(monkeypatch):
    """To the last bit, so that an interrupted measurement goes on with the same numbers."""
    monkeypatch.setattr(_passes, "BLOCK", 8)
    what, model, room = sorted(asked(), key=lambda question: question.context), random_model(101), Room(300, 1)
    portions = [what[:7], what[7:14], what[14:], what[:7]]
    longest = max(len(question.context) for question in what) + 3
    read, run = [], _passes._run

    def counted(model, one, *rest):
        read.append(len(one.tokens))
        return run(model, one, *rest)

    plain = [tree_scores(model, portion, room) for portion in portions]
    monkeypatch.setattr(_passes, "_run", counted)
    fresh = [tree_scores(model, portion, room, Beginning(longest)) for portion in portions]
    blocks, used = read.count(8), Beginning(longest)
    for portion, one, expected in zip(portions, fresh, plain, strict=True):
        np.testing.assert_array_equal(tree_scores(model, portion, room, used), one)
        np.testing.assert_allclose(one, expected, atol=ROUNDING)
    assert 0 < read.count(8) - blocks < blocks / 2, "most blocks are read once"


def test_attention_with_a_mask_equals_that_with_packed_products(monkeypatch):
    what, model = asked(), random_model(101)
    packed = tree_scores(model, what, Room(300, 1))
    monkeypatch.setattr(_attention, "packs", lambda _: False)
    masked = tree_scores(model, what, Room(300, 1))
    assert (packed != masked).any(), "both went the same way"
    np.testing.assert_allclose(masked, packed, atol=ROUNDING)


@pytest.mark.slow
def test_half_precision_agrees_within_its_rounding():
    what, model = asked(), random_model(101).to(torch.bfloat16)
    plain, branched = one_by_one(model, what), tree_scores(model, what, Room(300, 1))
    assert plain.std() > 0.3
    np.testing.assert_allclose(branched, plain, atol=0.25)
    assert TransformersBackend(lambda: given(model, None).language_model, "x")._tree_is_exact(what)


def test_tree_equals_one_prompt_a_pass_whatever_continues_what():
    model = random_model(3)
    for what in map(random_questions, range(3)):
        what = [question for question in what if len(question.answers) == len(what[0].answers)]
        plain = one_by_one(model, what)
        for size in (1, 5, 1000):
            np.testing.assert_allclose(tree_scores(model, what, Room(size, 0)), plain, atol=ROUNDING)


@pytest.mark.parametrize("name", OTHER)
def test_other_models_are_measured_in_batches_with_the_same_numbers(name):
    what = asked()
    model = architecture(name, 101)
    backend = given(model, letter_tokenizer(chat=CHAT))
    assert not backend._tree_is_exact(what)
    plain = one_by_one(model, what)
    assert plain.std(0).min() > 0.01
    np.testing.assert_allclose(backend._method(what, backend._tree_is_exact(what))(what), plain, atol=ROUNDING)
    np.testing.assert_allclose(batch_scores(model, what, 1000, share=False), plain, atol=ROUNDING)


def test_a_window_that_hides_nothing_does_not_matter():
    from transformers import MistralConfig, MistralForCausalLM

    what = asked()
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    longest = max(len(question.context) for question in what) + 2
    for window, exact in ((longest, True), (longest - 12, False)):
        config = MistralConfig(vocab_size=101, num_key_value_heads=1, sliding_window=window, **sizes)
        backend = given(MistralForCausalLM(config), letter_tokenizer(chat=CHAT))
        assert backend._tree_is_exact(what) is exact
        np.testing.assert_allclose(
            backend._method(what, exact)(what), one_by_one(backend.language_model.model, what), atol=ROUNDING
        )


def test_the_models_own_attention_and_layers_are_put_back():
    model, what = random_model(101), asked()
    before = model.config._attn_implementation
    tree_scores(model, what, Room(300, 1))
    assert model.config._attn_implementation == before
    with pytest.raises((RuntimeError, IndexError)):
        tree_scores(model, [Question((1000,), ((1,), (2,)))], Room(300, 1))  # no such token
    assert model.config._attn_implementation == before
    with packed_linears(model):
        assert any("forward" in module.__dict__ for module in model.modules())
    assert not any("forward" in module.__dict__ for module in model.modules())


def test_passes_at_a_time_give_the_same_numbers_and_leave_all_as_it_was(monkeypatch):
    monkeypatch.setattr(_transformers, "PORTION", 8)
    model = random_model(101)
    backend = given(model, letter_tokenizer(chat=CHAT))
    everything = Game(("his", "her"), [("his", "her")], 3, SHORT, Payoffs()).prompts()
    before = model.config._attn_implementation, torch.get_num_threads()
    workers = []
    monkeypatch.setattr(_transformers, "in_order", lambda *given: workers.append(given[-1]) or in_order(*given))

    def scored(threads: int) -> np.ndarray:
        torch.set_num_threads(threads)
        portions = list(backend.score(everything, ("his", "her")))
        assert len(portions) == 11 and torch.get_num_threads() == threads == workers.pop()
        numbers = np.concatenate([portion.numbers for portion in portions])
        return np.concatenate([portion.log_probability for portion in portions])[np.argsort(numbers)]

    try:
        np.testing.assert_allclose(scored(3), scored(1), rtol=0, atol=ROUNDING)
        abandoned = backend.score(everything, ("his", "her"))
        next(abandoned)
        abandoned.close()
    finally:
        torch.set_num_threads(before[1])
    assert model.config._attn_implementation == before[0]


def test_work_at_a_time_comes_in_order_and_a_failure_is_raised():
    def work(item: int) -> int:
        time.sleep(0.02 * (item % 3 == 0))
        return 1 // (item - 7) if item == 7 else item

    done = in_order(work, range(7), 3)
    assert list(done) == list(range(7))
    seen = []
    with pytest.raises(ZeroDivisionError):
        for item in in_order(work, range(20), 3):
            seen.append(item)
    assert seen == list(range(7))


def test_work_that_nobody_waits_for_any_more_ends():
    ended = []

    def work(item: int) -> int:
        try:
            for _ in range(1000 if item else 1):
                check_awaited()
                time.sleep(0.01)
        except AbandonedError:
            ended.append(item)
            raise
        return item

    waited = in_order(work, range(4), 2)
    assert next(waited) == 0
    waited.close()
    assert ended


# --- memory --------------------------------------------------------------------------------------------------------


def test_passes_at_a_time_fit_the_budget_together():
    """Each has its own cache of a prompt and its own logits; one pass more would be too many."""
    heads, size, layers, both, float32 = 2, 8, 2, 2, 4
    assert footprint(random_model(101)).cached == heads * size * layers * both * float32
    assert footprint(architecture("mamba", 101)).cached == 0
    small = Footprint(cached=46_080, working=120_000, predicted=983_040)
    for longest, budget in ((500, GIB), (8000, 4 * GIB)):
        passes = small.passes(budget, longest)
        each = MOST_TOKENS_CPU * (2 * 46_080 + 120_000) + longest * 46_080 + 983_040
        assert passes * each <= budget < (passes + 1) * each
    assert small.passes(1, 500) == 1


def test_a_budget_bounds_what_is_held_at_once(monkeypatch):
    """Counts the bytes of the largest arrays that a forward pass makes, and of the keys and values that are kept."""
    what = asked(memory_length=3)
    model = random_model(101)
    size = footprint(model)
    longest = max(map(len, sequences_of(what)))
    held = []

    def counted(module, arguments, output):
        held.append(max(x.nbytes for x in (*arguments, output)))

    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(counted)
    peaks = []
    for budget in (1_000_000, 4_000_000):
        held.clear()
        room = Room(size.tokens(budget, longest), size.wanted)
        tree_scores(model, what, room)
        assert 4 * max(held) < budget
        peaks.append(max(held))
    assert peaks[1] > 2 * peaks[0], "a larger budget was not used"
    with pytest.raises(InputError, match="memory_budget = 50000: expected at least"):
        size.tokens(50_000, longest)


# --- against exhaustive enumeration --------------------------------------------------------------------------------


def enumerated(model, context, alphabet, length):
    """P(sequence) for every token sequence of this length, shape (V, …, V)."""
    heads = list(itertools.product(range(alphabet), repeat=length - 1))
    with torch.no_grad():
        log_p = model(torch.tensor([[*context, *head] for head in heads])).logits.double().log_softmax(-1)
    total = torch.zeros(len(heads), alphabet, dtype=torch.float64)
    for row, head in enumerate(heads):
        total[row] = log_p[row, -1] + sum(log_p[row, len(context) - 1 + i, token] for i, token in enumerate(head))
    return total.exp().numpy().reshape((alphabet,) * length)


SPACED = LETTERS + " "
# Text, words, merges of the tokenizer, and how the words are spelled.
SPELLINGS = {
    "share a token": ("say'his'or'her'", ("his", "her"), [], ["h i s", "h e r"]),
    "one token": ("say'his'or'her'", ("a", "b"), [], ["a", "b"]),
    "one continues": ("say'his'or'her'", ("he", "her"), [], ["h e", "h e r"]),
    "a tree": ("say'his'or'her'", ("h", "he", "her", "hi"), [], ["h", "h e", "h e r", "h i"]),
    "a leading space": ("say a ", ("her", "hi", "ant"), [(" ", "h"), ("e", "r")], [" h er", " h i", "  a n t"]),
    "merged with the quotation mark": ("say'", ("her", "a", "hi"), [("'", "h")], ["'h e r", "' a", "'h i"]),
    "whole words": ("say'", ("her", "hi", "here"), [("h", "e"), ("he", "r"), ("h", "i")], ["her", "hi", "her e"]),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_scores_equal_exhaustive_enumeration(case):
    text, words, merges, spellings = SPELLINGS[case]
    tokenizer = letter_tokenizer(SPACED, merges=merges)
    model = random_model(len(tokenizer))
    (question,) = questions(tokenizer, [text], words)
    assert [" ".join(tokenizer.convert_ids_to_tokens(list(answer))) for answer in question.answers] == spellings

    # The probability of a word is that of its tokens as the tokenizer encodes them behind the text; where the tokens
    # of a longer word follow, it is that word which is said.
    whole = {word: tokenizer(text + word, add_special_tokens=False)["input_ids"] for word in words}
    behind = {word: tuple(tokens[len(question.context) :]) for word, tokens in whole.items()}
    length = max(map(len, behind.values()))
    said = dict.fromkeys(words, 0.0)
    everything = enumerated(model, question.context, len(tokenizer), length)
    for tokens in itertools.product(range(len(tokenizer)), repeat=length):
        spoken = [word for word in words if tokens[: len(behind[word])] == behind[word]]
        if spoken:
            said[max(spoken, key=lambda word: len(behind[word]))] += everything[tokens]
    for begun in (tree_scores(model, [question], Room(100, 1)), batch_scores(model, [question], 100)):
        probability = np.exp(disjoint(begun[0], question.answers))
        np.testing.assert_allclose(probability, list(said.values()), rtol=1e-5)
        assert probability.sum() < 1


def test_an_improbable_continuation_leaves_no_negative_probability():
    model = random_model(5)
    answers = ((3,), (3, 4), (3, 4, 1))
    words = disjoint(tree_scores(model, [Question((1, 2), answers)], Room(100, 1))[0], answers)
    assert np.isfinite(words).all() and np.exp(words).sum() <= 1
    rounded = disjoint(np.log([0.25, 0.25 * (1 + 1e-9), 0.1]), answers)
    assert rounded[0] == -np.inf, "rounding must not make a NaN of what is left of a word"


def test_caches_are_given_and_taken_by_the_name_of_this_release():
    """A warning would be an error. The control is the other name, of which releases that have both warn."""
    model, what = random_model(101), asked()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shared = batch_scores(model, what, 1000)
    np.testing.assert_allclose(shared, one_by_one(model, what), atol=ROUNDING)
    assert repeatable(model) and footprint(model).cached > 0
    if _passes.takes(model, "cache"):
        with pytest.warns(FutureWarning, match="past_key_values"):
            model(input_ids=torch.tensor([[1]]), past_key_values=None)
