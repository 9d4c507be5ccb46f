"""Two communities of agents with an opinion or in doubt: four attractors, each with two saddles."""

from __future__ import annotations

import numpy as np

import meanfield

ERRS = 0.1
FIRM = [1.0, 0.98]  # how surely the undecided follow A and B


def undecided(firm=FIRM, *, communities: int = 1, coupling: float = 0.0, encounter_rate: float = 1.0):
    """Agents who hear the other opinion doubt, those in doubt follow; both err.

    Agents of the other community count with the probability `coupling`.
    """
    states = [(str(c), opinion) for c in range(communities) for opinion in ("A", "B", "?")]
    one, alpha, beta, first = np.eye(3), [], [], []
    for hearer in range(communities):
        for heard in range(len(states)):
            said, share = heard % 3, 1.0 if heard // 3 == hearer else coupling
            move = np.eye(len(states))
            if said < 2:
                own = slice(3 * hearer, 3 * hearer + 3)
                doubts = np.array([one[2] if k == 1 - said else one[k] for k in range(3)])
                doubts[2] = firm[said] * one[said] + (1 - firm[said]) * one[2]
                move[own, own] = share * doubts + (1 - share) * one
            alpha.append(np.repeat(np.eye(communities)[hearer], 3))
            beta.append(np.eye(len(states))[heard])
            first.append(move)
    alone = np.kron(np.eye(communities), ERRS * np.array([[0, 0, 1], [0, 0, 1], [0.5, 0.5, 0]]))
    return meanfield.ReactionModel(states, alpha, beta, first, None, alone, encounter_rate)
