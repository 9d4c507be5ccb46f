"""A changed policy, with what each of its memories costs."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield._finite_size.least_change import Changed, Slope, divergence
from meanfield._population.single_policy import labels_of, space_of, words_of
from meanfield._population.tabulation import named_memories, text_of
from meanfield.toolbox._columns import labelled


def changed_policy(policy: xr.Dataset, before: Slope, changed: Changed, *, value: str, path: str) -> xr.Dataset:
    """The policy, the memories with the largest costs first; `value` names what was changed along which `path`."""
    original, after = policy["q"].values, changed.slope
    apart = divergence(changed.q, original)
    cost = after.weight * apart
    memories = [text_of(one) for one in named_memories(space_of(policy), words_of(policy))]
    slope = f"derivative of {value} with respect to q(first word)"
    result = labelled(
        {
            "q": (("state", "word"), changed.q, "probability of saying the word"),
            "memory": ("state", np.array(memories, dtype=str), "own word/partner's word, oldest first", ""),
            "change": ("state", changed.q[:, 0] - original[:, 0], "change of q(first word)"),
            "divergence": ("state", apart, "KL(changed || original)", "nats"),
            "weight": ("state", after.weight, f"fraction of agents with this memory, along {path}"),
            "cost": ("state", cost, "weight times divergence", "nats"),
            "derivative": ("state", before.derivative, f"{slope}, before"),
            "derivative_after": ("state", after.derivative, f"{slope}, after"),
            "total_cost": ((), cost.sum(), "sum of the costs", "nats"),
        },
        coords={**labels_of(policy), "state": np.arange(len(cost))},
    )
    return result.isel(state=np.argsort(-cost, kind="stable")).assign_attrs(residual=changed.residual)
