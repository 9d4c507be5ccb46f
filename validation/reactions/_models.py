"""Reaction models as the interactions of finitely many agents.

`ReactionModel.protocol` gives the same process as one array. Here every channel has outcomes of its own, which tells
the channel of an interaction and needs as many rows as outcomes, not K⁴.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from meanfield import ReactionModel
from meanfield.toolbox import check_memory
from validation.reactions._kernel import NO_CHANGES, Changes, Outcomes, outcomes_of
from validation.reactions._transitions import ROUNDING

COMPOSITIONS = 2**14  # whose rates are computed at once


def interaction_rate(model: ReactionModel) -> float:
    """Interactions that an agent initiates per unit of time: encounters, and moves alone at constant rates."""
    if len(model.changes) and not len(model.alpha) and not model.spontaneous.nnz:
        return 0.0
    return model.encounter_rate + float(model.spontaneous.sum(axis=1).max())


def changes_of(model: ReactionModel, n_agents: int) -> tuple[Changes, float]:
    """Moves at rates that are functions, tabulated for every composition of N agents, and their largest total rate.

    Rates of moves out of empty states are 0 there: they don't matter.
    """
    if not len(model.changes):
        return NO_CHANGES, 0.0
    order = np.argsort(model.changes.source, kind="stable")
    source, target = model.changes.source[order], model.changes.target[order]
    free = model.n_states - 1  # the last state has the other agents
    rows = (n_agents + 1) ** free
    check_memory(8 * rows * len(order), f"counts has {n_agents} agents in {free + 1} states", "fewer of either")
    strides = np.append((n_agents + 1) ** np.arange(free), 0)
    reach = np.zeros((rows, len(order)))
    for start in range(0, rows, COMPOSITIONS):
        some = np.arange(start, min(start + COMPOSITIONS, rows))
        counts = some[:, None] // strides[:-1] % (n_agents + 1)
        counts = np.column_stack([counts, n_agents - counts.sum(1)])
        some, counts = some[counts[:, -1] >= 0], counts[counts[:, -1] >= 0]
        padded = np.resize(counts, (min(rows, COMPOSITIONS), free + 1))  # a program is compiled for each number
        rates = model.changes.checked(padded / n_agents)[: len(some), order]
        reach[some] = np.where(counts[:, source] > 0, rates, 0.0)
    return _cumulated(source, target, reach, strides, interaction_rate(model))


def moves_alone(model: ReactionModel) -> tuple[ReactionModel, Changes]:
    """The encounters of a model, and its moves of one agent at constant rates, of an agent at random.

    Where agents who are likelier to meet are not likelier to move they can't be interactions of pairs.
    """
    alone = csr_array(model.spontaneous)
    alone.sort_indices()
    encounters = ReactionModel(
        model.states, model.alpha, model.beta, model.first, model.second, None, model.encounter_rate, model.time_unit
    )
    if not alone.nnz:
        return encounters, NO_CHANGES
    moves, strides = coo_array(alone), np.zeros(model.n_states, np.int64)
    return encounters, _cumulated(moves.row, moves.col, alone.data[None].copy(), strides, model.encounter_rate)[0]


def _cumulated(
    source: np.ndarray, target: np.ndarray, reach: np.ndarray, strides: np.ndarray, rate: float
) -> tuple[Changes, float]:
    """Moves sorted by their source, at the rates `reach` (rows, R), beside interactions at this rate."""
    first = np.searchsorted(source, np.arange(len(strides) + 1))
    for part in map(slice, first[:-1], first[1:]):
        reach[:, part] = np.cumsum(reach[:, part], axis=1)
    most = float(reach.max())
    share = most / (most + rate or 1.0)
    threshold = np.array([min(int(share * 2.0**64), 2**64 - 1)], np.uint64)
    reach /= most if most > 0 else 1.0
    return Changes(threshold, first, np.column_stack([source, target]), reach, strides), most


def reaction_outcomes(
    model: ReactionModel,
    changes: Changes = NO_CHANGES,
    groups: np.ndarray | None = None,
    marks: np.ndarray | None = None,
) -> Outcomes:
    """Outcomes of interactions, each channel's apart; `marks` (M,) is the count of an encounter by each channel.

    `groups` and `changes` are as for `outcomes_of`.
    """
    groups = np.empty((0, model.n_states), np.int64) if groups is None else groups
    marks = np.zeros(len(model.alpha), np.int64) if marks is None else marks
    every = np.arange(model.n_states)
    rate = interaction_rate(model)
    parts = []
    for m, mark in enumerate(marks):
        own, partner = (
            coo_array(shows[m][:, None] * matrix.toarray())
            for shows, matrix in ((model.alpha, model.first[m]), (model.beta, model.second[m]))
        )
        chance = np.multiply.outer(own.data, partner.data) * model.encounter_rate / rate
        parts.append(_rows(own.row, own.col, partner.row, partner.col, chance, mark))
    alone = coo_array(model.spontaneous)
    moves = np.multiply.outer(np.asarray(alone.data, dtype=np.float64) / (rate or 1.0), np.ones(model.n_states))
    parts.append(_rows(alone.row, alone.col, every, every, moves, 0))
    before, after, chance, marked = map(np.concatenate, zip(*parts, strict=True))
    total = np.zeros((model.n_states, model.n_states))
    np.add.at(total, tuple(before.T), chance)
    idle = np.argwhere(total < 1 - ROUNDING)
    before, after = np.vstack([before, idle]), np.vstack([after, idle])
    chance = np.append(chance, 1 - total[tuple(idle.T)])
    marked = np.append(marked, np.zeros(len(idle), np.int64))
    order = np.argsort(-chance, kind="stable")  # outcomes are tried one after another
    watched = np.eye(model.n_states, dtype=np.int64)
    return outcomes_of(before[order], after[order], chance[order], marked[order], groups, watched, changes)


def _rows(
    i: np.ndarray, i_after: np.ndarray, j: np.ndarray, j_after: np.ndarray, chance: np.ndarray, mark: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(before, after, probability, marked) of every combination of an initiator's move and a responder's."""
    a, b = (index.ravel() for index in np.indices((len(i), len(j))))
    before, after = np.column_stack([i[a], j[b]]), np.column_stack([i_after[a], j_after[b]])
    return before, after, chance.ravel(), np.full(len(a), mark, np.int64)
