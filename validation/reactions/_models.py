"""Reaction models as the interactions of finitely many agents.

`ReactionModel.protocol` gives the same law as one array. Here every channel has outcomes of its own, which tells
the channel of an interaction and needs as many rows as outcomes, not K⁴.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from meanfield import ReactionModel
from validation.reactions._kernel import Outcomes, outcomes_of
from validation.reactions._transitions import ROUNDING


def interaction_rate(model: ReactionModel) -> float:
    """Interactions that an agent initiates per unit of time: encounters, and moves alone."""
    return model.encounter_rate + float(model.spontaneous.sum(axis=1).max())


def reaction_outcomes(
    model: ReactionModel, groups: np.ndarray | None = None, marks: np.ndarray | None = None
) -> Outcomes:
    """Outcomes of interactions, each channel's apart; `marks` (M,) is the count of an encounter by each channel.

    `groups` is as for `outcomes_of`.
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
    moves = np.multiply.outer(np.asarray(alone.data, dtype=np.float64) / rate, np.ones(model.n_states))
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
    return outcomes_of(before[order], after[order], chance[order], marked[order], groups, watched)


def _rows(
    i: np.ndarray, i_after: np.ndarray, j: np.ndarray, j_after: np.ndarray, chance: np.ndarray, mark: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(before, after, probability, marked) of every combination of an initiator's move and a responder's."""
    a, b = (index.ravel() for index in np.indices((len(i), len(j))))
    before, after = np.column_stack([i[a], j[b]]), np.column_stack([i_after[a], j_after[b]])
    return before, after, chance.ravel(), np.full(len(a), mark, np.int64)
