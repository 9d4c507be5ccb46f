"""[004] Figs. S1 to S3 and Table S2: what a language model itself has to answer."""

from __future__ import annotations

from paper_figs._item import Item

MODEL = "it needs a language model, which this command does not run; python -m paper_figs.{} draws it from a file of {}"
ITEMS = [
    Item(
        "004",
        "S1",
        "Questions about the prompt",
        "The share of correct answers by kind of question, for four models and 100 random memories each.",
        reason=MODEL.format("comprehension", "policy_extraction.checks.comprehension"),
    ),
    Item(
        "004",
        "S2",
        "Simulated and generated populations",
        "Collective bias of populations that were generated word by word, beside populations simulated from policies.",
        reason=MODEL.format("generation", "policy_extraction.checks.generation_test"),
    ),
    Item(
        "004",
        "S3",
        "Policies against generated words",
        "p-values, shares and standardised deviations of words that Phi-4 wrote, against its policy for {his, her}.",
        reason=MODEL.format("generation", "policy_extraction.checks.generation_test"),
    ),
    Item(
        "004",
        "Table S2",
        "Questions about the prompt",
        "The templates of the questions, in three groups: rules, time and state.",
        reason="it holds no numbers; policy_extraction.checks.comprehension asks these questions",
    ),
]
