# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Measuring a model you pay for
#
# A policy of two words with five remembered interactions takes 2,730 prompts. Most of them hardly matter for a
# collective quantity. Here a table stands in for the service, so that nothing is paid and the truth is known: what
# SmolLM2 answered to all prompts of {his, her}.

# %%
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import meanfield
import policy_extraction
from policy_extraction import Limits
from policy_extraction.backends import TableBackend

words, H = ("his", "her"), 5
(gallery,) = meanfield.each_policy(meanfield.datasets.smollm2().sel(pair="his/her"))
space = meanfield.MemorySpace(2, H)
answers = np.exp(gallery["log_probability"].transpose("order", "state", "word").values)
presented = [tuple(label.split(", ")) for label in gallery["order_label"].values]
asked = []


def service(memory, order):
    """The model's answer to one prompt; each is counted."""
    asked.append(memory)
    number = space.state([tuple(map(words.index, pair)) for pair in memory])
    return dict(zip(words, answers[presented.index(tuple(order)), number], strict=True))


def connect():
    return TableBackend(service, words, memory_length=H, identity="answers of SmolLM2")


# %% [markdown]
# ## What it will cost
#
# `cost` sends nothing. Prices are for a million tokens; these are examples.

# %%
limits = Limits(input_price=2.5, output_price=10.0, requests_per_minute=500)
costs = {
    name: policy_extraction.cost(None, words=words, memory_length=H, budget=budget, limits=limits)
    for name, budget in {"all prompts": None, "400 of them": 400}.items()
}
pd.DataFrame({name: {key: one[key].item() for key in ("prompts", "price", "seconds")} for name, one in costs.items()})

# %% [markdown]
# ## A part of the prompts
#
# `measure` asks the memories that tell the goal most, until the 95 % interval of the goal is narrow enough: here the
# share of 'his' in a large population, to 5 %.

# %%
model = connect()
asked.clear()
policy = policy_extraction.measure(
    model, words=words, memory_length=H, goal="word_share", tolerance=0.05, seed=1, cache=False
)
known = policy.attrs
print(f"{known['prompts_used']} prompts, and {len(asked) - known['prompts_used']} to try how the model answers")
print(f"share of 'his': {known['goal_value']:.4f}, 95 % interval {known['goal_low']:.4f} to {known['goal_high']:.4f}")
truth = meanfield.fixed_points(gallery)["word_share"].sel(word="his").item()
print(f"from all 2,730 prompts: {truth:.4f}")

# %% [markdown]
# Of the seeds 0 to 5 only 0 gives an interval that leaves out the true share, by 0.0003. On average one in twenty does.
#
# Does the model of the answers hold? Two thirds of each batch are drawn at random, mostly where the goal depends on
# them, and predicted before. The result says how many of these answers were outside their 95 % intervals. Here the
# truth is known for all memories, those too that hardly matter for the goal and are known less well:

# %%
draws = policy_extraction.sample_policies(policy, 200, seed=1)
low, high = np.quantile([draw["q"].sel(word="his") for draw in draws], [0.025, 0.975], axis=0)
true = gallery["q"].sel(word="his").values
unasked = ~policy["asked"].values
inside = (low <= true) & (true <= high)
print(f"{known['held_out_outside']} of {known['held_out']} tests are outside their intervals")
print(f"of {unasked.sum()} memories that were not asked {inside[unasked].mean():.0%} are inside theirs")

figure, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
shown = np.flatnonzero(unasked)[:: max(1, unasked.sum() // 150)]
middle = policy["q"].sel(word="his").values
axis.errorbar(true[shown], middle[shown], yerr=[(middle - low)[shown], (high - middle)[shown]], fmt=".", elinewidth=0.6)
axis.plot([0, 1], [0, 1], "k", linewidth=0.8)
_ = axis.set(xlabel="P(his), measured", ylabel="P(his), not measured: median and 95 % interval")
# %% [markdown]
# ## Any analysis, with its interval
#
# Policies drawn from the posterior agree with every answer. They differ where prompts are missing. The goal was the
# share in the long run. The first rounds depend on memories that are not full, which have no weight in it and are known
# less well.

# %%
times = np.linspace(0, 20, 41)
figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
for draw in draws[:25]:
    axis.plot(times / 2, meanfield.solve(draw, times=times)["word_share"].sel(word="his"), "C0", linewidth=0.5)
axis.plot(times / 2, meanfield.solve(gallery, times=times)["word_share"].sel(word="his"), "k", label="all prompts")
axis.set(xlabel="rounds", ylabel="share of 'his'")
axis.legend()


def ahead(policy):
    """The probability that 'his' is ahead among 100 agents."""
    law = meanfield.group_size_law(policy, n_agents=[100], order=2)
    return law["probability"].item() if law["strong_word"] == "his" else 1 - law["probability"].item()


print("probability that 'his' is ahead among 100 agents:")
print(
    "from eight draws", np.round([ahead(draw) for draw in draws[:8]], 3), "from all prompts", round(ahead(gallery), 3)
)

# %% [markdown]
# ## Stopped, and gone on
#
# Answers are stored as they come. A measurement that ended at its budget goes on where it was, and pays only for
# new prompts, and for a few that try how the model answers.

# %%
with tempfile.TemporaryDirectory() as folder:
    for budget in (120, 240):
        asked.clear()
        part = policy_extraction.measure(
            model, words=words, memory_length=H, goal="word_share", tolerance=1e-4, budget=budget, cache=folder
        )
        print(f"budget {budget}: {part.attrs['prompts_used']} prompts used, {len(asked)} sent; {part.attrs['reason']}")

# %% [markdown]
# ## A real service
#
# The same call with `policy_extraction.backends.OpenAIBackend("gpt-4o-2024-08-06", limits=Limits(max_cost=1.0, ...))`
# asks OpenAI, with `base_url=` any server that speaks its protocol: vLLM and SGLang give exactly the words' tokens
# (`exact=True`). `batches=True` sends the prompts of each step as a batch, at half the price. A batch takes up to a
# day, and κ about 20 steps; a process that was killed finds its batch again.
#
# ## Does the conclusion survive?
#
# A measurement holds for one wording, one order of presentation, one kind of quotation marks. `robustness` varies them,
# with a part of the prompts each. On the model itself, with one remembered interaction:

# %%
table = policy_extraction.robustness(words=words, memory_length=1, cache=False)
axes = meanfield.plot(table)
