"""The numbering of memories against the paper's definition of the shift function ([004] Eqs. 7-8)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanfield import InputError, MemorySpace

spaces = st.builds(MemorySpace, st.integers(2, 4), st.integers(1, 3))


@given(spaces, st.data())
def test_number_and_memory_are_inverse(space, data):
    state = data.draw(st.integers(0, space.n_states - 1))
    assert space.state(space.memory(state)) == state


@given(spaces, st.data())
def test_successor_appends_and_forgets_the_oldest(space, data):
    state = data.draw(st.integers(0, space.n_states - 1))
    own, partner = (data.draw(st.integers(0, space.n_words - 1)) for _ in range(2))
    expected = (*space.memory(state), (own, partner))[-space.memory_length :]
    assert space.memory(int(space.successors()[state]) + space.n_words * own + partner) == expected


def test_states_are_ordered_by_length_then_digits():
    space = MemorySpace(2, 2)
    memories = [space.memory(i) for i in range(space.n_states)]
    assert memories[:6] == [(), ((0, 0),), ((0, 1),), ((1, 0),), ((1, 1),), ((0, 0), (0, 0))]
    assert memories[6] == ((0, 0), (0, 1)), "the oldest interaction is the most significant digit"
    assert memories == sorted(memories, key=lambda memory: (len(memory), memory))


def test_number_of_states_of_the_paper():
    assert MemorySpace(2, 5).n_states == (4**6 - 1) // 3 == 1365
    assert MemorySpace.from_sizes(1365, 2) == MemorySpace(2, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MemorySpace(1, 3), "n_words = 1"),
        (lambda: MemorySpace(2, 0), "memory_length = 0"),
        (lambda: MemorySpace.from_sizes(1364, 2), "1364 states with 2 words"),
        (lambda: MemorySpace.from_sizes(5, 1), "n_words = 1: expected a whole number of at least 2"),
        (lambda: MemorySpace(2, 1).state([(0, 0), (0, 0)]), "memory of 2 interactions"),
        (lambda: MemorySpace(2, 1).state([(0, 2)]), "word in memory = 2"),
        (lambda: MemorySpace(2, 1).memory(5), "state = 5"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("number", [2.5, True, None])
def test_only_whole_numbers_make_a_space(number, unchecked_types):
    for make, names in ((MemorySpace, ("n_words", "memory_length")), (MemorySpace.from_sizes, ("n_states", "n_words"))):
        for name in names:
            with pytest.raises(InputError, match=f"{name} = .*: expected a whole number"):
                make(**{**dict.fromkeys(names, 5), name: number})


@pytest.mark.parametrize("sizes", [(2, 10**9), (10**18, 10**18)])
def test_states_can_be_counted_whatever_the_integers(sizes, unchecked_types):
    with pytest.raises(InputError, match=r"expected fewer than 10\^1000 states"):
        MemorySpace(*sizes)
    assert MemorySpace(np.int8(100), np.int64(9)) == MemorySpace(100, 9)
    assert MemorySpace(np.int8(100), np.int64(9)).n_states > 10**36, "numpy's integers would overflow"
