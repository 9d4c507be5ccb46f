"""Interactions of two, from a log with a row for each message."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np
import pandas as pd

from meanfield.datasets._log_table import (
    NO_ANSWER,
    Complaints,
    Table,
    checked_columns,
    is_missing,
    names_of,
    numbers_of,
    read_table,
    with_columns,
)


def interactions(
    messages: Table,
    *,
    columns: Mapping[str, str | None] | None = None,
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8-sig",
) -> pd.DataFrame:
    """The table that `from_events` takes, from a log with a row for each message: two messages are an interaction.

    Parameters
    ----------
    messages
        A table or a file, as for `from_events`, with the columns

        - `run` and `step`, as there. Where columns={"step": None}, the first message of an agent to another in a run
          and the first one back are an interaction, then the second ones, and so on. A message without a reply shifts
          all later ones: give `step` or `pair` if there can be such;
        - `agent`, who wrote the message, and `said`, its word;
        - `partner`, to whom; or `pair`, a name or whole number that the two messages of a step share;
        - optionally `heard`, the partner's word: compared with the other message, and used where that one is missing.
    columns, sep, decimal, encoding
        As in `from_events`.

    Returns
    -------
    DataFrame with a row for each interaction, in the order of their first messages, and the columns `run`, `step`,
    `agent` (who wrote the first), `partner`, `said` and `heard`, None where there is no message back.

    Raises
    ------
    InputError
        If the file can't be read or a column is missing. Cells are checked first, then pairs, then `heard`; each check
        tells all it finds, with the numbers of rows from 0: a cell is not a name or number, more than two messages
        belong together, one agent wrote both, they name other partners, or `heard` differs.

    See Also
    --------
    from_events : runs, from this table

    Examples
    --------
    >>> messages = pd.DataFrame(
    ...     [(0, 1, "ada", "bob", "A"), (0, 1, "cy", "dan", "B"), (0, 1, "bob", "ada", "B"), (0, 1, "dan", "cy", "B")],
    ...     columns=["run", "step", "agent", "partner", "said"],
    ... )
    >>> meanfield.datasets.interactions(messages)
       run  step agent partner said heard
    0    0     1   ada     bob    A     B
    1    0     1    cy     dan    B     B
    """
    columns = checked_columns(columns)
    table, needed = read_table(messages, "messages", sep, encoding), ("run", "step", "agent", "said")
    by_pair = columns.get("partner", "partner") not in table.columns and "partner" not in columns
    needed = (*needed, "pair" if by_pair else "partner")
    log = with_columns(table, "messages", columns, needed, ("heard",) if by_pair else ("heard", "pair"))
    complaints = Complaints(len(log))
    _, wrote = names_of(complaints, log, *(("agent",) if by_pair else ("agent", "partner")))
    if not by_pair:
        alone = (wrote[0] == wrote[1]) & ~complaints.rows
        complaints.add(alone, "an agent writes to itself", "another partner", log["agent"])
    _, (run,) = names_of(complaints, log, "run")
    keys = {"run": run, "step": numbers_of(complaints, log, "step", decimal)}
    in_order = columns.get("step", "step") is None
    if by_pair or "pair" in log:
        keys["pair"] = names_of(complaints, log, "pair")[1][0]
        keys |= {"step": np.zeros(len(log))} if in_order else {}
    else:
        keys |= {"low": np.minimum(*wrote), "high": np.maximum(*wrote)}
        if in_order:
            keys["step"] = pd.DataFrame([run, *wrote]).T.groupby([0, 1, 2]).cumcount().to_numpy()
    complaints.raise_any()

    grouped = pd.DataFrame(keys).groupby([*keys], sort=False)
    group, place = grouped.ngroup().to_numpy(), grouped.cumcount().to_numpy()
    size = np.bincount(group)[group]
    first, second = np.flatnonzero(place == 0), np.flatnonzero(place == 1)
    other = np.full(len(log), -1)
    other[first[group[second]]] = second
    other[second] = first[group[second]]
    complaints.add(size > 2, "more than two messages belong together", "two of each pair and step")
    alone = (size == 2) & (wrote[0] == wrote[0][other])
    complaints.add(alone, "both messages are by one agent", "one of each", log["agent"])
    if not by_pair:
        crossed = (size == 2) & ~alone & ((wrote[1] != wrote[0][other]) | (wrote[0] != wrote[1][other]))
        complaints.add(crossed, "partner", "who wrote the other message of the pair", log["partner"])
    if by_pair:
        complaints.add(size == 1, "no other message has this step and pair", "two, or the column partner", log["agent"])
    complaints.raise_any()
    said, paired = log["said"].to_numpy(object), other >= 0
    answer = np.where(paired, said[other], None)
    if "heard" in log:
        told = log["heard"].to_numpy(object)
        there, known = (np.array([not _is_no_answer(cell) for cell in cells]) for cells in (told, answer))
        same = [isinstance(one, (str, Real)) and one == two for one, two in zip(told, answer, strict=True)]
        wrong = there & known & ~np.array(same)
        complaints.add(wrong, "heard", "the word of the other message", log["heard"])
        complaints.raise_any()
        lost = there & ~known
        answer = np.where(lost, told, answer)
        said = np.where(paired & lost[other], told[other], said)
    partner = log["agent"].to_numpy(object)[other] if by_pair else log["partner"].to_numpy(object)
    found = log[["run", "step", "agent"]].assign(partner=partner, said=said, heard=answer)
    return found.iloc[first].reset_index(drop=True)


def _is_no_answer(cell: object) -> bool:
    return is_missing(cell) or (isinstance(cell, str) and cell in NO_ANSWER)
