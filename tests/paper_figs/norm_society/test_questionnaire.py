"""The questionnaire of [003] Appendix E: forms from records, refusal of what is not filled in, and Fig. 4's numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import meanfield
from _refusals import refused
from meanfield import InputError
from paper_figs.norm_society import evaluation_form, questionnaire_scores

# [003] Fig. 4: score, standard error; and the number of questions of the task, Figs. E1 and E2.
PUBLISHED = {
    "Creation": (6.44, 0.11, 3),
    "Sender": (5.86, 0.05, 2),
    "Receiver": (5.77, 0.08, 2),
    "Observation": (5.13, 0.05, 2),
    "Immediate Evaluation": (5.14, 0.07, 5),
    "Long-term Synthesis": (5.97, 0.07, 1),
    "Plan": (6.43, 0.14, 1),
    "Action": (6.40, 0.04, 1),
}
OVERALL, EVALUATORS, ENTREPRENEURS, ITEMS = 5.63, 30, 9, 20
OPERATIONS = (
    "detect_conflict", "decide_to_talk", "identify_chat", "identify_thought", "is_consistent", "is_type_right",
    "is_unique", "is_conflict_free", "abstract", "plan", "act",
)  # fmt: skip


def records(agent: str = "Sam Moore", number: int = 30) -> list[dict]:
    """`number` records of each operation, told apart by their inputs and outputs."""
    made = [
        {"operation": name, "agent": agent, "prompt": {"n": k}, "answer": f"{name} {k}"}
        for name in OPERATIONS
        for k in range(number)
    ]
    made += [
        {"operation": "identify", "agent": agent, "source": source, "prompt": {"n": k}, "answer": f"{source} {k}"}
        for source in ("chat", "thought")
        for k in range(number)
    ]
    norms = [{"content": f"norm {k}", "kind": "injunctive", "utility": 50} for k in range(number)]
    return [*made, {"operation": "create", "agent": agent, "prompt": {}, "answer": norms}]


def filled(form: dict, scores: dict[str, list[int]] | int) -> dict:
    """The same form with scores, by task or everywhere the same; those of a task are taken one after the other."""
    form = json.loads(json.dumps(form))
    for task in form["tasks"]:
        for question in task["questions"]:
            for k, item in enumerate(question["items"]):
                item["score"] = scores if isinstance(scores, int) else scores[task["name"]][k]
    return form


def items(form: dict, task: str, question: int) -> list[dict]:
    (found,) = (one for one in form["tasks"] if one["name"] == task)
    return found["questions"][question - 1]["items"]


# --- forms ---


def test_a_form_has_the_eight_tasks_and_twenty_items_a_question() -> None:
    form = evaluation_form(records(), "Sam Moore", seed=1)
    assert json.loads(json.dumps(form)) == form
    assert [task["name"] for task in form["tasks"]] == list(PUBLISHED)
    assert {task["name"]: len(task["questions"]) for task in form["tasks"]} == {k: v[2] for k, v in PUBLISHED.items()}
    every = [question["items"] for task in form["tasks"] for question in task["questions"]]
    assert {len(one) for one in every} == {ITEMS}
    assert all(item["score"] is None for one in every for item in one)
    assert all(len({json.dumps(item) for item in one}) == ITEMS for one in every)
    assert "smoke" in form["description"] or "smoker" in form["description"]
    assert form["scale"]["7"] == "I strongly agree" and len(form["scale"]) == 7
    assert "1 to 7" in form["instructions"]


def test_items_are_of_the_right_operations() -> None:
    form = evaluation_form(records(), "Sam Moore", seed=1)
    for task, question, start in (
        ("Sender", 1, "detect_conflict "),
        ("Sender", 2, "decide_to_talk "),
        ("Receiver", 1, "identify_chat "),
        ("Receiver", 2, "chat "),
        ("Observation", 1, "identify_thought "),
        ("Observation", 2, "thought "),
        ("Immediate Evaluation", 1, "is_consistent "),
        ("Immediate Evaluation", 2, "is_type_right "),
        ("Immediate Evaluation", 3, "is_unique "),
        ("Immediate Evaluation", 4, "is_conflict_free "),
        ("Long-term Synthesis", 1, "abstract "),
        ("Plan", 1, "plan "),
        ("Action", 1, "act "),
    ):
        found = items(form, task, question)
        assert all(item["output"] == f"{start}{item['input']['n']}" for item in found)
    assert {item["output"].split()[0] for item in items(form, "Immediate Evaluation", 5)} == {"chat", "thought"}
    assert all(item["output"]["content"].startswith("norm ") for item in items(form, "Creation", 2))


def test_the_draw() -> None:
    """Uniform: each of 30 records is drawn with 20/30; of 300 forms its number lies within 5 standard deviations."""
    one, same, other = (evaluation_form(records(), "Sam Moore", seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    few = records(number=30)
    drawn = np.zeros(30)
    for seed in range(300):
        found = items(evaluation_form(few, "Sam Moore", seed=seed), "Plan", 1)
        drawn[[item["input"]["n"] for item in found]] += 1
    assert (np.abs(drawn - 200) < 5 * np.sqrt(300 * 20 / 30 * 10 / 30)).all()
    short = evaluation_form(records(number=3), "Sam Moore", per_question=5, seed=0)
    assert [item["input"]["n"] for item in items(short, "Plan", 1)] == [0, 1, 2]
    assert len(items(short, "Immediate Evaluation", 5)) == 5


def test_only_the_agent_s_own_records_count() -> None:
    mixed = [*records("Bob Johnson", 4), *records("Sam Moore", 2)]
    assert len(items(evaluation_form(mixed, "Sam Moore", seed=0), "Action", 1)) == 2
    assert evaluation_form(records("Ann", 1), "Ann", seed=0)["description"] == ""
    with pytest.raises(InputError, match="agent = 'Ann': expected one whose operations"):
        evaluation_form(mixed, "Ann", seed=0)


def test_the_log_of_a_society_is_read(tmp_path: Path) -> None:
    """Exchanges with a model, event by event; an identified norm belongs to the question before it."""

    def exchange(operation: str, answer: str, **more: object) -> dict:
        prompt = {"system": "You are Ann.", "user": f"{operation}?", "answer_prefix": ""}
        return {"operation": operation, "agent": "Ann", "prompt": prompt, "answer": answer, **more}

    norms = [{"content": "Be quiet.", "kind": "injunctive", "utility": 80}] * 2
    events = [
        {"norm_society": 3, "agents": ["Ann", "Bob"]},
        {"exchanges": [exchange("create", json.dumps(norms), problem="")]},
        {
            "exchanges": [
                exchange("identify_thought", "yes", p_yes=0.8),
                exchange("identify", "not JSON", problem="no JSON"),
                exchange("identify", '{"content": "Be quiet."}', problem=""),
            ],
        },
        {"exchanges": []},
        {"exchanges": [exchange("identify_chat", "yes"), exchange("identify", "Tip.", problem="")]},
        {"exchanges": [exchange("identify_chat", "no"), exchange("has_thought", "yes")]},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    form = evaluation_form(path, "Ann", seed=0)
    assert [item["output"] for item in items(form, "Creation", 3)] == norms
    assert [item["output"] for item in items(form, "Observation", 2)] == ['{"content": "Be quiet."}']
    assert [item["output"] for item in items(form, "Receiver", 2)] == ["Tip."]
    assert [item["output"] for item in items(form, "Receiver", 1)] == ["yes", "no"]
    assert items(form, "Observation", 1)[0]["input"]["user"] == "identify_thought?"


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with refused("there is no such file"):
        evaluation_form(path, "Ann", seed=0)
    for text in (b'{"a": 1}\n{"a"\n', b"\xff\n", b"[1]\n", b'{"exchanges": 3}\n'):
        path.write_bytes(text)
        with refused(r"log\.jsonl: line . is no event of a society's log"):
            evaluation_form(path, "Ann", seed=0)
    for wrong in (3, {"operation": "act", "agent": "Ann", "prompt": ""}):
        with refused(r"records\[1\] = .*: expected operation, agent, prompt and answer"):
            evaluation_form([records()[0], wrong], "Ann", seed=0)


@pytest.mark.parametrize(
    "answer", [[{"content": "a"}, "b"], '[{"content": "a"}, "b"]', '\n [{"content": "a"}, "b"] These are my norms.']
)
def test_created_norms_are_judged_one_by_one(answer: object) -> None:
    created = {"operation": "create", "agent": "Ann", "prompt": "", "answer": answer}
    form = evaluation_form([created], "Ann", seed=0)
    assert [item["output"] for item in items(form, "Creation", 2)] == [{"content": "a"}, "b"]


# --- what is read ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            (
                lambda form, score=score: items(form, "Sender", 2)[3].update(score=score),
                f"score of Sender = {score!r}: ",
            )
            for score in (8, 0, 5.5, "5", True, None)
        ),
        (lambda form: form["tasks"].pop(), "expected a form that evaluation_form made, with all its tasks"),
        (lambda form: form["tasks"][4]["questions"].pop(), "expected a form that evaluation_form made"),
        (dict.clear, "expected a form that evaluation_form made"),
    ],
)
def test_forms_that_are_not_filled_in_are_refused(change, message: str) -> None:
    """In one line, whole: the same form without the mistake gives scores."""
    form = filled(evaluation_form(records(), "Sam Moore", per_question=5, seed=0), 6)
    assert float(questionnaire_scores([form])["overall"]) == 6
    change(form)
    with refused(rf"forms\[1\]: {message}"):
        questionnaire_scores([filled(evaluation_form(records(), "Sam Moore", seed=0), 6), form])


def test_forms_without_items_are_refused() -> None:
    empty = evaluation_form([{"operation": "talk", "agent": "Ann", "prompt": {}, "answer": ""}], "Ann", seed=0)
    with refused("no question has items"):
        questionnaire_scores([empty])
    with refused("forms is empty"):
        questionnaire_scores([])


# --- scores ---


def test_scores_of_known_forms(tmp_path: Path) -> None:
    """Two forms, of which one lacks creation: by hand."""
    whole = evaluation_form(records(number=2), "Sam Moore", seed=0)
    part = evaluation_form([one for one in records(number=2) if one["operation"] != "create"], "Sam Moore", seed=0)
    first, second = filled(whole, 6), filled(part, 4)
    items(second, "Sender", 1)[0]["score"] = 7
    found = questionnaire_scores([first, second])
    assert float(found["score"].sel(task="Creation")) == 6 and np.isnan(found["standard_error"].sel(task="Creation"))
    assert found["forms"].sel(task="Creation") == 1 and found["forms"].sel(task="Plan") == 2
    # Sender: question means 6, 6 and 5.5, 4
    sender = found.sel(task="Sender")
    assert float(sender["score"]) == pytest.approx((6 + 6 + 5.5 + 4) / 4)
    assert float(sender["standard_error"]) == pytest.approx(np.std([6, 4.75], ddof=1) / np.sqrt(2))
    assert int(sender["items"]) == 8
    assert float(found["overall"]) == pytest.approx((17 * 6 + 13 * 4 + 5.5) / 31)
    mean = float(found["overall"])
    deviations = np.array([17 * 6 - 17 * mean, 13 * 4 + 5.5 - 14 * mean])
    assert float(found["overall_standard_error"]) == pytest.approx(np.sqrt(2 * (deviations**2).sum()) / 31)
    assert found["module"].values.tolist()[:4] == ["Creation", "Spreading", "Spreading", "Spreading"]
    loaded = meanfield.load(meanfield.save(found, tmp_path / "scores.nc"))
    assert float(loaded["overall"]) == mean
    alone = questionnaire_scores([second])
    assert np.isnan(alone["score"].sel(task="Creation")) and np.isnan(alone["overall_standard_error"])


def spread(mean: float, number: int = 100) -> list[int]:
    """`number` scores with this mean, as nearly as they can have it."""
    low = int(mean)
    upper = round(number * (mean - low))
    return [low + 1] * upper + [low] * (number - upper)


@pytest.fixture(scope="module")
def blank() -> dict[bool, dict]:
    """Forms for an entrepreneur (True) and for an ordinary agent, who has not created norms."""
    every = records(number=100)
    ordinary = [one for one in every if one["operation"] != "create"]
    return {
        creates: evaluation_form(known, "Sam Moore", per_question=100, seed=0)
        for creates, known in ((True, every), (False, ordinary))
    }


def test_the_published_overall_score(blank: dict[bool, dict]) -> None:
    """30 forms, 9 of them of entrepreneurs, with the published score for each question: 5.625, published as 5.63.

    What the scores are rounded by moves it by 0.005 at most. Control: had all 30 created norms, it would be 5.73.
    """
    scores = {task: spread(score) for task, (score, _, _) in PUBLISHED.items()}
    creator, ordinary = (filled(blank[creates], scores) for creates in (True, False))
    found = questionnaire_scores([creator] * ENTREPRENEURS + [ordinary] * (EVALUATORS - ENTREPRENEURS))
    for task, (score, _, _) in PUBLISHED.items():
        assert float(found["score"].sel(task=task)) == pytest.approx(score, abs=1e-9)
    assert abs(float(found["overall"]) - OVERALL) <= 0.005
    assert int(found["forms"].sel(task="Creation")) == ENTREPRENEURS
    assert float(questionnaire_scores([creator] * EVALUATORS)["overall"]) == pytest.approx(5.726, abs=5e-4)
