"""A log of the shape of the classic experiments with people, from its file to what it is good for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from meanfield import InputError
from meanfield.datasets import from_events
from validation.populations import choice_scores, cross_validate, empirical_policy, report, validate, winners

SIZES = [19] * 15 + [18] * 6  # 393 people
INTERACTIONS = 14_028
CHANGE = 30  # the round from which confederates say the new word
COLUMNS = {"run": "game", "step": "round", "agent": "player 1", "partner": "player 2"}
COLUMNS |= {"said": "answer 1", "heard": "answer 2"}


def play(random: np.random.Generator) -> pd.DataFrame:
    """Nine pairs a round. People imitate, some do not answer; two confederates in each run say Ana, and later Eva."""
    rows = []
    for game, size in enumerate(SIZES):
        people = [f"{'conf' if k < 2 else 'person'}-{game}-{k}" for k in range(size)]
        heard = dict.fromkeys(people, "Ana")
        for turn in range(1, 76):
            order = random.permutation(people)
            for pair in order[:18].reshape(9, 2).tolist():
                words = []
                for one in pair:
                    word = heard[one] if random.random() < 0.9 else str(random.choice(["Ana", "Eva", "Zoë"]))
                    word = ("Ana" if turn < CHANGE else "Eva") if one.startswith("conf") else word
                    words.append(word if one.startswith("conf") or random.random() > 0.02 else "na")
                if "na" not in words:
                    heard |= dict(zip(pair, words[::-1], strict=True))
                rows.append((f"G{game:02}", turn, *pair, *words))
    return pd.DataFrame(rows[:INTERACTIONS], columns=[COLUMNS[name] for name in COLUMNS])


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "people.csv"
    play(np.random.default_rng(0)).to_csv(path, index=False, sep=";", encoding="utf-8-sig")
    return path


def read(log, **options):
    played = pd.read_csv(log, sep=";", keep_default_na=False)
    people = pd.unique(played[["player 1", "player 2"]].to_numpy().ravel())
    assert len(played) == INTERACTIONS and len(people) == sum(SIZES)
    games = played.groupby("player 1")["game"].first().to_dict() | played.groupby("player 2")["game"].first().to_dict()
    committed = pd.DataFrame([(games[one], one, "Eva") for one in people if one.startswith("conf")])
    committed.columns = ["run", "agent", "word"]
    return from_events(log, memory_length=12, columns=COLUMNS, sep=";", committed=committed, **options), played


def test_people_are_read_by_name_without_the_answers_that_they_did_not_give(log):
    with pytest.warns(UserWarning, match=r"of 14028 interactions lack an answer and are left out: rows \d+"):
        real, played = read(log, committed_from=CHANGE)
    assert real.events is not None and real.skipped is not None
    lost = (played[["answer 1", "answer 2"]] == "na").any(axis=1)
    kept = played[~lost]
    assert len(real.events) == len(kept) and lost.sum() > 300
    assert sum(int(told.split()[0]) for told in real.skipped["reason"]) == lost.sum()
    assert real.runs["n_agents"].tolist() == SIZES and real.runs["name"].tolist() == [f"G{k:02}" for k in range(21)]
    assert set(real.runs["options"]) == {"Ana_Eva_Zoë"} and set(real.runs["experiment"]) == {"committed"}
    for side in (1, 2):
        told = real.events["agent_name" if side == 1 else "partner_name"].astype(str)
        assert told.tolist() == kept[f"player {side}"].tolist()
    before = (kept["round"] < CHANGE).groupby(kept["game"]).sum()
    assert real.runs["committed_from"].tolist() == before.tolist()
    free = sum((~kept[f"player {side}"].str.startswith("conf")).sum() for side in (1, 2))
    assert real.choice_counts["count"].sum() == free
    assert real.choice_counts["state"].str.count(",").max() == 12


def test_confederates_who_change_are_no_agents_committed_from_the_start(log):
    with pytest.raises(InputError, match="said by a committed agent = 'Ana' in rows"):
        read(log)


@pytest.mark.filterwarnings("ignore:.*lack an answer")
def test_what_is_not_simulated_is_told(log):
    """Single choices are scored; outcomes are not foreseen by a simulation that knows no change in mid-run."""
    real, _ = read(log, committed_from=CHANGE)
    short = real._replace(runs=real.runs.assign(memory_length=1))
    scores = choice_scores(short).set_index("law")["log_likelihood"]
    assert scores["policy"] > scores["constant frequencies"]
    for table in (validate(real, draws=1, runs=1), cross_validate(short, draws=1, runs=1)):
        assert set(table["verdict"]) == {"not simulated"} and table["note"].str.contains("committed from mid-run").all()
        assert table["runs"].sum() == len(SIZES)
        first, *_, summary = report(table)
        assert ": not simulated; agents are committed from mid-run on" in first
        assert f"0 too few data, {len(report(table)) - 1} not simulated, of" in summary
        assert summary.endswith(f"0 of 0 single tests disagree, up to 0 by chance; {len(table)} more are not simulated")


def test_the_end_of_a_log_is_no_time_of_consensus():
    """A run of nine interactions, none of which stopped it: it could have gone on."""
    rows = [(1, "ada", "bob", "Q", "M"), (1, "cy", "dan", "Q", "Q"), (2, "ada", "cy", "M", "Q")]
    rows += [(2, "bob", "dan", "Q", "Q"), (3, "ada", "dan", "Q", "Q"), (3, "bob", "cy", "Q", "na")]
    rows += [(4, "ada", "bob", "Q", "Q"), (4, "cy", "dan", "M", "Q"), (5, "ada", "cy", "Q", "Q")]
    log = pd.DataFrame(rows, columns=["step", "agent", "partner", "said", "heard"])
    with pytest.warns(UserWarning, match="1 of 9 interactions lack an answer"):
        real = from_events(log, memory_length=1, columns={"run": None})
    table = validate(real, draws=2, runs=20)
    assert table["quantity"].tolist() == ["majority word"] and table["verdict"].tolist() == ["too few data"]
    stopped = validate(real, draws=2, runs=20, window=1)
    assert stopped["quantity"].tolist() == ["majority word", "time"]
    assert stopped["note"].iloc[1] == "a run stops when it succeeds in: all of the last 1"


def test_ten_lines_are_a_policy_in_one_call(tmp_path):
    lines = ["round,a,b,x,y", "1,ada,bob,Q,M", "1,cy,dan,Q,Q", "2,ada,cy,M,Q", "2,bob,dan,Q,Q", "3,ada,dan,Q,Q"]
    (tmp_path / "log.csv").write_text(
        "\n".join([*lines, "3,bob,cy,Q,Q", "4,ada,bob,Q,Q", "4,cy,dan,M,Q", "5,bob,cy,Q,Q"])
    )
    names = {"run": None, "step": "round", "agent": "a", "partner": "b", "said": "x", "heard": "y"}
    real = from_events(tmp_path / "log.csv", memory_length=1, columns=names)
    policy = empirical_policy(real.choice_counts)
    assert policy["observed"].sum() == 18 and real.runs["agreed_at_end"].tolist() == [1]
    with pytest.warns(UserWarning, match="none of 1 runs from empty memories agrees on a word"):
        assert winners(real.runs).empty
