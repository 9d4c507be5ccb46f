"""The questionnaire of [003] Appendix E: forms from records, refusal of what is not filled in, and Fig. 4's numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from validation.norms import evaluation_form, questionnaire_scores, read_evaluation

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
OVERALL, OVERALL_ERROR, EVALUATORS, ENTREPRENEURS, ITEMS = 5.63, 0.03, 30, 9, 20
OPERATIONS = (
    "detect_conflict", "decide_to_talk", "identify_chat", "identify_thought", "is_consistent", "is_type_right",
    "is_unique", "is_conflict_free", "abstract", "plan", "act",
)  # fmt: skip


def records(agent: str = "Sam Moore", number: int = 30) -> list[dict]:
    """`number` records of each operation, told apart by their inputs and outputs."""
    made = [
        {"operation": name, "agent": agent, "inputs": {"n": k}, "output": f"{name} {k}"}
        for name in OPERATIONS
        for k in range(number)
    ]
    made += [
        {"operation": "identify", "agent": agent, "source": source, "inputs": {"n": k}, "output": f"{source} {k}"}
        for source in ("chat", "thought")
        for k in range(number)
    ]
    norms = [{"content": f"norm {k}", "kind": "injunctive", "utility": 50} for k in range(number)]
    return [*made, {"operation": "create", "agent": agent, "inputs": {}, "output": norms}]


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
    form = evaluation_form(mixed, "Sam Moore", seed=0)
    assert len(items(form, "Action", 1)) == 2
    without = [one for one in records(number=2) if one["operation"] != "create"]
    assert items(evaluation_form(without, "Sam Moore", seed=0), "Creation", 1) == []
    assert evaluation_form(records("Ann", 1), "Ann", seed=0)["description"] == ""
    assert evaluation_form(records("Ann", 1), "Ann", seed=0, description="A poet.")["description"] == "A poet."
    with pytest.raises(InputError, match="agent = 'Ann': expected one whose operations"):
        evaluation_form(mixed, "Ann", seed=0)


def test_the_log_of_a_society_is_read(tmp_path: Path) -> None:
    """Exchanges with a model, event by event; an identified norm belongs to the question before it."""

    def exchange(operation: str, answer: str, **more: object) -> dict:
        prompt = {"system": "You are Ann.", "user": f"{operation}?", "answer_prefix": ""}
        return {"operation": operation, "agent": "Ann", "prompt": prompt, "answer": answer, **more}

    norms = [{"content": "Be quiet.", "kind": "injunctive", "utility": 80}] * 2
    events = [
        {"norm_society": 1, "agents": ["Ann", "Bob"]},
        {"event": 0, "exchanges": [exchange("create", json.dumps(norms), problem="")]},
        {
            "event": 1,
            "exchanges": [
                exchange("identify_thought", "yes", p_yes=0.8),
                exchange("identify", "not JSON", problem="no JSON"),
                exchange("identify", '{"content": "Be quiet."}', problem=""),
            ],
        },
        {"event": 2, "exchanges": []},
        {"event": 3, "exchanges": [exchange("identify_chat", "yes"), exchange("identify", "Tip.", problem="")]},
        {"event": 4, "exchanges": [exchange("identify_chat", "no"), exchange("has_thought", "yes")]},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    form = evaluation_form(path, "Ann", seed=0)
    assert [item["output"] for item in items(form, "Creation", 3)] == norms
    assert [item["output"] for item in items(form, "Observation", 2)] == ['{"content": "Be quiet."}']
    assert [item["output"] for item in items(form, "Receiver", 2)] == ["Tip."]
    assert [item["output"] for item in items(form, "Receiver", 1)] == ["yes", "no"]
    assert items(form, "Observation", 1)[0]["input"]["user"] == "identify_thought?"


def act(output: str) -> dict:
    return {"operation": "act", "agent": "Ann", "inputs": {}, "output": output}


def test_lines_as_files_have_them(tmp_path: Path) -> None:
    """Ends of lines inside of JSON, of other systems, none at the end; and the file of a run that was killed."""
    acts = [act("one\u2028two\x85three"), act("Grüße"), act("last")]
    first, second, third = (json.dumps(one, ensure_ascii=False).encode() for one in acts)
    path = tmp_path / "log.jsonl"

    def read() -> list[str]:
        return [item["output"] for item in items(evaluation_form(path, "Ann", seed=0), "Action", 1)]

    outputs = [one["output"] for one in acts]
    for whole in (b"\n".join([first, second, third, b""]), b"\r\n\n".join([first, second, third])):
        path.write_bytes(whole)
        assert read() == outputs
    in_the_umlaut = second.index("ü".encode()) + 1
    for torn in (1, in_the_umlaut, len(second) - 1):
        path.write_bytes(first + b"\n" + second[:torn])
        assert read() == outputs[:1]
        path.write_bytes(first + b"\n" + second[:torn] + b"\n" + third)
        with pytest.raises(InputError, match=r"log\.jsonl: line 2 is not JSON in UTF-8"):
            read()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a": 1}\n{"a"\n', r"log\.jsonl: line 2 is not JSON"),
        (b'{"a"', "line 1 is not JSON"),
        (b"\xff\n", "line 1 is not JSON in UTF-8"),
        ('{"a": 1}\n'.encode("utf-16"), "line 1 is not JSON in UTF-8"),
        (b"[" * 100_000 + b"\n", "line 1 is not JSON"),
        (b"\n[1]\n", "line 2 is a list, expected a record"),
        (b"null\n", "line 1 is a NoneType, expected a record"),
        (b'{"exchanges": null}\n', "line 1 has exchanges that are no list of records"),
        (b'{"exchanges": [{}, 3]}\n', "line 1 has exchanges that are no list of records"),
        (b'{"operation": "act", "agent": "Ann", "inputs": {}}\n', "line 1: act by Ann has neither output nor answer"),
        (b'{"operation": "act", "agent": "Ann", "answer": ""}\n', "line 1: act by Ann has neither inputs nor prompt"),
        (b"", "agent = 'Ann': expected one whose operations are among the records"),
    ],
)
def test_records_that_cannot_be_read_are_refused(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message) as error:
        evaluation_form(path, "Ann", seed=0)
    assert "\n" not in str(error.value)


def test_what_is_no_record_is_refused(tmp_path: Path, unchecked_types) -> None:
    for missing, message in ((tmp_path / "none.jsonl", "there is no such file"), (tmp_path, "it is a folder")):
        with pytest.raises(InputError, match=message):
            evaluation_form(missing, "Ann", seed=0)
    with pytest.raises(InputError, match=r"records\[1\] is a int, expected a record"):
        evaluation_form([act(""), 3], "Ann", seed=0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"records\[0\]: act by Ann has neither output nor answer"):
        evaluation_form([{"operation": "act", "agent": "Ann", "inputs": {}}], "Ann", seed=0)


@pytest.mark.parametrize(
    ("answer", "norms"),
    [
        ('[{"content": "a"}, {"content": "b"}]', [{"content": "a"}, {"content": "b"}]),
        ('\n [{"content": "a"}, {"content": "b"}] These are my norms.', [{"content": "a"}, {"content": "b"}]),
        ([{"content": "a"}, "b"], [{"content": "a"}, "b"]),
        ('["a", "b"]', ["a", "b"]),
        ('{"content": "a"}', ['{"content": "a"}']),
        ("My norms: [1, 2]", ["My norms: [1, 2]"]),
        ("[1] Be quiet.", ["[1] Be quiet."]),
        ("[] Be quiet.", ["[] Be quiet."]),
        ("[" * 100_000, ["[" * 100_000]),
        (None, [None]),
    ],
)
def test_created_norms_are_judged_one_by_one(answer: object, norms: list) -> None:
    """Also those of a list that a model went on to explain; an answer that is no list is one item."""
    created = {"operation": "create", "agent": "Ann", "prompt": "", "answer": answer}
    form = evaluation_form([created], "Ann", seed=0)
    assert [item["output"] for item in items(form, "Creation", 2)] == norms


# --- what is read ---


def without(task: str):
    return lambda form: form["tasks"].remove(next(one for one in form["tasks"] if one["name"] == task))


def with_score(score: object):
    return lambda form: items(form, "Sender", 2)[3].update(score=score)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_score(8), "task 'Sender', question 2, item 4 has the score 8, expected a whole number from 1 to 7"),
        (with_score(0), "item 4 has the score 0"),
        (with_score(5.0), r"item 4 has the score 5\.0"),
        (with_score("5"), "item 4 has the score '5'"),
        (with_score(True), "item 4 has the score True"),
        (with_score(None), "task 'Sender', question 2, item 4 has no score"),
        (lambda form: items(form, "Plan", 1)[0].pop("score"), "task 'Plan', question 1, item 1 has no score"),
        (without("Plan"), "task 'Plan' is there 0 times"),
        (lambda form: form["tasks"].append(form["tasks"][0]), "task 'Creation' is there 2 times"),
        (lambda form: form["tasks"].append({"name": "Sleep"}), "there is a task 'Sleep'"),
        (lambda form: form["tasks"].append({"name": []}), r"there is a task \[\]"),
        (lambda form: form["tasks"].append({}), "there is a task None"),
        (lambda form: form["tasks"].__setitem__(6, "Plan"), "task 'Plan' is there 0 times"),
        (lambda form: form["tasks"][4]["questions"].pop(), "task 'Immediate Evaluation' lacks questions, expected 5"),
        (lambda form: form["tasks"][7]["questions"][0].pop("items"), "task 'Action', question 1 has no list of items"),
        (lambda form: form.update(norm_evaluation=2), "expected a form that evaluation_form made"),
        (lambda form: form.pop("tasks"), "expected a form that evaluation_form made"),
    ],
)
def test_forms_that_are_not_filled_in_are_refused(change, message: str, tmp_path: Path) -> None:
    """In one line, whole: the same form without the mistake is read, and gives scores."""
    form = filled(evaluation_form(records(), "Sam Moore", per_question=5, seed=0), 6)
    path = tmp_path / "form.json"
    path.write_text(json.dumps(form), encoding="utf-8")
    assert read_evaluation(path) == form
    assert float(questionnaire_scores([form])["overall"]) == 6
    change(form)
    path.write_text(json.dumps(form), encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_evaluation(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"forms\[1\]"):
        questionnaire_scores([filled(evaluation_form(records(), "Sam Moore", seed=0), 6), form])


def test_files_that_are_no_forms_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "form.json"
    with pytest.raises(InputError, match="can't be read"):
        read_evaluation(path)
    for text, message in (("{", "expected JSON"), ("[]", "expected a form"), ("3", "expected a form")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_evaluation(path)
    for unreadable in (b"[" * 100_000, b"\xff"):
        path.write_bytes(unreadable)
        with pytest.raises(InputError, match="expected JSON"):
            read_evaluation(path)
    empty = evaluation_form([{"operation": "talk", "agent": "Ann", "inputs": {}, "output": ""}], "Ann", seed=0)
    path.write_text(json.dumps(empty), encoding="utf-8")
    with pytest.raises(InputError, match="no question has items"):
        read_evaluation(path)
    with pytest.raises(InputError, match="forms is empty"):
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


@pytest.mark.slow
def test_standard_error_is_that_of_many_samples() -> None:
    """Over 200 sets of 30 forms with scatter between forms the error estimated is the one there is, within a quarter.

    Error budget: the standard deviation of 200 values has a relative error of 0.05, and five of them are a quarter;
    errors over single scores, the control, would be less than half as large.
    """
    rng = np.random.default_rng(0)
    forms = {k: filled(evaluation_form(records(number=2), "Sam Moore", seed=0), k) for k in range(1, 8)}
    means, errors = [], []
    for _ in range(200):
        found = questionnaire_scores([forms[int(k)] for k in rng.integers(4, 8, 30)])
        means.append(float(found["overall"]))
        errors.append(float(found["overall_standard_error"]))
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.25)
    over_scores = np.std(np.arange(4, 8)) / np.sqrt(30 * 17 * 2)
    assert over_scores < 0.5 * np.std(means)


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


def patterns() -> dict[str, np.ndarray]:
    """How 30 forms, the first nine of entrepreneurs, differ in each task: sum 0, length 1, orthogonal to each other.

    Creation differs among the nine only, and nothing else between them and the others. A third of the forms is hard on
    plans: so near to 7, scores scatter as much as published only if a few of them are low.
    """
    third = np.arange(EVALUATORS) % 3
    creator = np.arange(EVALUATORS) < ENTREPRENEURS
    first = {"": np.ones(EVALUATORS), "creator": creator, "Plan": np.where(third, 1, -2)}
    first["Creation"] = creator * np.array([0, 1, -1])[third]
    others = [task for task in PUBLISHED if task not in first]
    drawn = np.random.default_rng(0).normal(size=(EVALUATORS, len(others)))
    Q, R = np.linalg.qr(np.column_stack([*first.values(), drawn]))
    return dict(zip([*first, *others], (Q * np.sign(np.diag(R))).T, strict=True))


def overall_error(blank: dict[bool, dict], pattern_of: dict[str, np.ndarray]) -> float:
    """Of 30 forms with the published scores and errors of the tasks, that differ by these patterns."""
    forms = []
    for k in range(EVALUATORS):
        means = {}
        for task, (score, error, _) in PUBLISHED.items():
            number = ENTREPRENEURS if task == "Creation" else EVALUATORS
            means[task] = score + error * np.sqrt(number * (number - 1)) * pattern_of[task][k]
        forms.append(filled(blank[k < ENTREPRENEURS], {task: spread(mean) for task, mean in means.items()}))
    found = questionnaire_scores(forms)
    for task, (score, error, _) in PUBLISHED.items():
        assert float(found["score"].sel(task=task)) == pytest.approx(score, abs=0.005)
        assert float(found["standard_error"].sel(task=task)) == pytest.approx(error, abs=0.005)
    return float(found["overall_standard_error"])


def test_the_published_overall_error(blank: dict[bool, dict]) -> None:
    """0.033, published as 0.03, if evaluators who are hard on one task are not on others.

    0.030 of it are the errors of the tasks, with their weights. The rest is that entrepreneurs alone are asked about
    creation, which is scored high. Control: where who is hard on plans is so on all but creation, it is twice as large.
    """
    independent = patterns()
    found = overall_error(blank, independent)
    assert found == pytest.approx(OVERALL_ERROR, abs=0.005)
    score, error, number = (np.array(column) for column in zip(*PUBLISHED.values(), strict=True))
    answered = np.array([ENTREPRENEURS, *[EVALUATORS] * 7]) * number
    of_tasks = np.sqrt(((answered * error) ** 2).sum())
    above = number * (score - np.average(score, weights=answered))
    of_creation = np.sqrt(ENTREPRENEURS * above.sum() ** 2 + (EVALUATORS - ENTREPRENEURS) * above[1:].sum() ** 2)
    assert of_tasks / answered.sum() == pytest.approx(0.030, abs=5e-4)
    assert found == pytest.approx(np.hypot(of_tasks, of_creation) / answered.sum(), rel=0.02)
    together = dict.fromkeys(PUBLISHED, independent["Plan"]) | {"Creation": independent["Creation"]}
    assert overall_error(blank, together) > 0.06
