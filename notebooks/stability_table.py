# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # From a policy to a checked stability table
#
# A policy gives the probability of each word in every memory state. It determines the rate equation of a large
# population, its fixed points and their stability. Simulations show from which group size on the theory holds.

# %%
import matplotlib.pyplot as plt
import pandas as pd

import meanfield
import validation

# %% [markdown]
# ## Policies
#
# The package has the policies of SmolLM2-135M for eleven word pairs, with memories of H = 5 interactions.
# `policy_extraction.extract` measures the policy of your own model. What do agents say in each memory? In the first two
# pairs mostly the word that they said longest ago (the finest stripes), and in the third nearly always 'man'.

# %%
policies = meanfield.datasets.smollm2().sel(pair=["his/her", "young/old", "woman/man"])
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
axes = meanfield.plot(policies, axes)

# %% [markdown]
# ## Table
#
# In a candidate everybody remembers one word only. It is a fixed point only if its residual 1 - q is 0, that is, if an
# agent with this memory never says another word. Small deviations from a fixed point grow if its eigenvalue λ is
# positive and decay if λ is negative. The table shows one stable fixed point for each pair: a mixture of both words for
# the first two, and nearly everybody saying 'man' for the third.

# %%
table = meanfield.stability_table(policies)
columns = ["word_share", "residual", "is_fixed_point", "eigenvalue", "stability"]
table.to_dataframe().set_index(["pair", "row", "word"])[columns].round(4)

# %%
for sentence in meanfield.describe_stability(table):
    print(sentence)

# %% [markdown]
# ## The table of [004]
#
# [004] publishes policies of larger models. On which words can a large population agree? With GPT-4o (above) on either
# word of each pair, and an unstable fixed point separates the two. With Llama 3.1 on one word of most pairs.

# %%
published = meanfield.datasets.llm_group_size()
larger = meanfield.stability_table(published)
figure, axis = plt.subplots(figsize=(10, 7), layout="constrained")
axis = meanfield.plot(larger, axis)

# %% [markdown]
# Which of the candidates in Table S1 of the paper are no fixed points? Two of Llama's, the open circles: an agent
# surrounded by 'her' still says 'his' with probability 0.056. The attractor nearby is a mixture, with 79 % 'her'.

# %%
rows = larger.to_dataframe().set_index(["model", "pair", "row", "word"])
rows[~rows["is_fixed_point"]][columns].round(3)

# %% [markdown]
# ## Check
#
# Do groups of N agents follow the rate equation? Simulated means, with 99 % confidence bands, differ from the dashed
# line for 24 agents, who soon all say 'more'. From 200 agents on the eye sees no difference.

# %%
comparisons = {}
for policy in meanfield.each_policy(published.sel(model="llama31_70B", pair=["gay/straight", "his/her", "more/less"])):
    runs = validation.simulate(policy, n_agents=[24, 200, 2000], runs=400, seed=1, max_rounds=100, record_rounds=30)
    comparisons[policy["pair"].item()] = validation.compare(meanfield.solve(policy), runs)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
for axis, comparison in zip(axes, comparisons.values(), strict=True):
    meanfield.plot(comparison, axis)

# %% [markdown]
# The error is the root mean square difference of the word shares, without the noise of the runs. With 2,000 agents the
# rate equation lies in the confidence band in all rounds, and most runs end as it predicts.

# %%
verdicts = ["error", "trajectory_agrees", "consensus_agrees"]
tables = {pair: comparison[verdicts].to_dataframe()[verdicts] for pair, comparison in comparisons.items()}
pd.concat(tables, names=["pair"]).round(4)
