"""One game asked in several ways, and the effect on its theory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, each_policy, group_size_law, solve, stability_table, validate_policy
from meanfield.toolbox import expect, instance, labels_of, name_of, stamp, words_of
from policy_extraction._toolbox.bars import hidden
from policy_extraction.measuring._extract import extract
from policy_extraction.prompts._template import NAMING_GAME, TEMPLATES, Payoffs, Template

Variant: TypeAlias = Template | Payoffs | tuple[Template, Payoffs]


def newest_first(template: Template) -> Template:
    """The template with its remembered rounds listed from the latest to the oldest.

    Parameters
    ----------
    template
        Any template.

    See Also
    --------
    prompt_variants : measures its effect

    Examples
    --------
    >>> from policy_extraction.measuring import newest_first
    >>> from policy_extraction.prompts import NAMING_GAME, Payoffs
    >>> prompt = newest_first(NAMING_GAME).prompt(("his", "her"), [("his", "his"), ("his", "her")], Payoffs())
    >>> [line[:10] for line in prompt.system.splitlines() if line.startswith("{'round'")]
    ["{'round':2", "{'round':1"]
    """
    instance("template", template, Template)
    return replace(template, name=f"{template.name} newest first", newest_first=True)


def unquoted(template: Template) -> Template:
    """The template with words without quotation marks, as the papers print them.

    The answer prefix loses its quotation mark too.

    Parameters
    ----------
    template
        A template with words in quotation marks.

    Raises
    ------
    InputError
        If it has none.

    See Also
    --------
    prompt_variants : measures its effect

    Examples
    --------
    >>> from policy_extraction.measuring import unquoted
    >>> from policy_extraction.prompts import NAMING_GAME
    >>> NAMING_GAME.option, unquoted(NAMING_GAME).option, unquoted(NAMING_GAME).answer_prefix
    ("'$word'", '$word', "{'value': ")
    """
    instance("template", template, Template)
    bare = template
    for field, slots in (("option", ("word",)), ("line", ("own", "partner"))):
        text = getattr(template, field)
        for slot in slots:
            for quoted in (f"'${slot}'", f'"${slot}"'):
                text = text.replace(quoted, f"${slot}")
        bare = replace(bare, **{field: text})
    prefix = template.answer_prefix.removesuffix("'").removesuffix('"')
    if bare == template or prefix == template.answer_prefix:
        raise InputError(f"template {template.name}: expected words in quotation marks, '$word'")
    return replace(bare, name=f"{template.name} unquoted", answer_prefix=prefix)


def standard_variants(template: Template = NAMING_GAME) -> dict[str, Variant]:
    """Variants that the papers leave open: wording, payoffs, order of lines and quotation marks.

    The first is the template itself, with the payoffs of the papers.

    Parameters
    ----------
    template
        The template to vary, with words in quotation marks.

    Returns
    -------
    {name: template, or a pair of template and payoffs}

    Raises
    ------
    InputError
        If the template has no quotation marks.

    See Also
    --------
    prompt_variants : measures them

    Examples
    --------
    >>> from policy_extraction.measuring import standard_variants
    >>> for name in standard_variants():
    ...     print(name)
    naming-game-004/1
    naming-game-000/1
    payoffs 10, -5
    payoffs 100, 0
    payoffs 50, -100
    newest round first
    words unquoted
    """
    instance("template", template, Template)
    other = next(published for published in TEMPLATES.values() if published.name != template.name)
    return {
        template.name: template,
        other.name: other,
        "payoffs 10, -5": (template, Payoffs(10, -5)),
        "payoffs 100, 0": (template, Payoffs(100, 0)),
        "payoffs 50, -100": (template, Payoffs(50, -100)),
        "newest round first": newest_first(template),
        "words unquoted": unquoted(template),
    }


def prompt_variants(
    model: Any,
    words: Any,
    memory_length: int = 5,
    variants: Mapping[str, Variant] | None = None,
    **options: Any,
) -> xr.Dataset:
    """The policies of one model for several variants of the prompt.

    Parameters
    ----------
    model, words, memory_length, options
        As in `extract`. Cached records of earlier ones are reused.
    variants
        Variants by name: a template, payoffs, or both as a pair; the rest is as in `extract`. None for
        `standard_variants`.

    Returns
    -------
    The Dataset of `extract` over a first dim `variant`, with the coordinates `template`, `payoff_success` and
    `payoff_failure` (variant). Each `policies.isel(variant=i)` is a policy.

    Raises
    ------
    InputError
        If there are no variants, one is of another kind, or `extract` refuses an argument.

    See Also
    --------
    standard_variants : variants that the papers leave open
    variant_table : their effect on the theory

    Examples
    --------
    A model that leans more to "his" if failure costs 100 points.

    >>> from policy_extraction.backends import Scores
    >>> from policy_extraction.measuring import prompt_variants
    >>> from policy_extraction.prompts import Payoffs
    >>> class Cautious:
    ...     name, identity, provenance = "cautious", "", {}
    ...     check = generate = lambda self, *asked, **options: None
    ...     tokens = lambda self, words: [""] * len(words)
    ...     def score(self, prompts, words):
    ...         p = np.array([[0.8, 0.2] if "-100" in prompt.system else [0.6, 0.4] for prompt in prompts])
    ...         yield Scores(np.arange(len(prompts)), np.log(p), np.zeros(p.shape, bool))
    >>> variants = {"usual": Payoffs(), "harder": Payoffs(50, -100)}
    >>> policies = prompt_variants(Cautious(), ("his", "her"), 1, variants, temperature=1.0)
    >>> policies["q"].isel(state=0).sel(word="his").to_series().round(2).to_dict()
    {'usual': 0.6, 'harder': 0.8}
    """
    variants = standard_variants() if variants is None else variants
    if not isinstance(variants, Mapping) or not variants:
        raise InputError(f"variants = {variants!r}: expected names with a template, payoffs or a pair of both")
    asked = {str(name): _parts(name, variant) for name, variant in variants.items()}
    measured = [
        extract(model, words=words, memory_length=memory_length, template=template, payoffs=payoffs, **options)
        for template, payoffs in asked.values()
    ]
    same = {"compat": "override", "join": "exact", "combine_attrs": "drop_conflicts"}
    return xr.concat(measured, dim="variant", data_vars="all", coords=["word_tokens"], **same).assign_coords(
        variant=list(asked),
        template=("variant", [template.name for template, _ in asked.values()]),
        payoff_success=("variant", [payoffs.success for _, payoffs in asked.values()]),
        payoff_failure=("variant", [payoffs.failure for _, payoffs in asked.values()]),
    )


def _parts(name: object, variant: object) -> tuple[Template, Payoffs]:
    if isinstance(variant, Template):
        return variant, Payoffs()
    if isinstance(variant, Payoffs):
        return NAMING_GAME, variant
    if isinstance(variant, tuple) and len(variant) == 2:
        template, payoffs = variant
        if isinstance(template, Template) and isinstance(payoffs, Payoffs):
            return template, payoffs
    raise InputError(f"variants[{name!r}] = {variant!r}: expected a Template, Payoffs, or a pair of both")


def variant_table(policies: xr.Dataset, *, progress: bool | None = None) -> xr.Dataset:
    """The effect of variants on the theory: stability of each consensus, strong word and group-size law.

    A candidate is the composition in which every agent remembers one word only. The group-size law Φ(κ√N) is the
    probability that N agents end at the strong word, and κ the slope of its argument in √N.

    Parameters
    ----------
    policies
        Result of `prompt_variants`. The first variant is the reference of all comparisons.
    progress
        Show a progress bar. Default: on a terminal.

    Returns
    -------
    Dataset over `variant`, and over `pair` if there are several, with

    - `eigenvalue` (…, word), leading eigenvalue at the candidate of each word ([004] Table S1), and `is_fixed_point`
      (…, word), whether the candidate is a fixed point;
    - `attractors`, the number of stable fixed points, and `strong_word`, to which the rate equation leads from empty
      memories, 'mostly his (0.78)' for no consensus;
    - `kappa` of `meanfield.group_size_law`, NaN unless there are two attractors and such a law, and `reason`;
    - `policy_distance`, the mean over states of the total variation distance from the reference policy;
    - `eigenvalue_change` and `kappa_change`, differences from the reference, and `strong_word_changes`,
      whether most agents come to say another word.

    Raises
    ------
    InputError
        If `policies` has no dim `variant` or holds no policies.

    See Also
    --------
    prompt_variants : the policies
    flip_table : how far each goes towards the other word

    Examples
    --------
    Without quotation marks the agents are less sure of themselves, and "his" no longer takes over.

    >>> from policy_extraction.measuring import variant_table
    >>> sure, unsure = (np.array(q) for q in ([0.6, 1.0, 0.7, 0.6, 0.0], [0.6, 0.9, 0.7, 0.6, 0.2]))
    >>> policies = [meanfield.make_policy(q, ["his", "her"]) for q in (sure, unsure)]
    >>> table = variant_table(xr.concat(policies, pd.Index(["quoted", "unquoted"], name="variant")))
    >>> table["strong_word"].values.tolist(), table["policy_distance"].values.round(2).tolist()
    (['his', 'mostly his (0.78)'], [0.0, 0.06])
    """
    named = named_stacks(policies)
    names, stacks = list(named), list(named.values())
    every = [policy for stack in stacks for policy in each_policy(stack)]
    found = [_row(one) for one in tqdm(every, desc="variants", unit="policy", disable=hidden(progress), leave=False)]
    if "pair" in policies.dims:
        n_pairs = policies.sizes["pair"]
        found = [xr.concat(found[i : i + n_pairs], dim="pair") for i in range(0, len(found), n_pairs)]
    table = xr.concat(found, dim="variant").assign_coords(
        {"variant": names}
        | {name: policies[name] for name in ("template", "payoff_success", "payoff_failure") if name in policies.coords}
        | labels_of(stacks[0])
    )
    distances = [abs(stack["q"] - stacks[0]["q"]).sum("word").mean("state") / 2 for stack in stacks]
    plain = [one.drop_vars([name for name in one.coords if name not in one.dims]) for one in distances]
    table["policy_distance"] = xr.concat(plain, dim=table["variant"])
    first = table.isel(variant=0)
    for name in ("eigenvalue", "kappa"):
        table[f"{name}_change"] = table[name] - first[name].drop_vars("variant")
    leading = table["leading_word"]
    table["strong_word_changes"] = leading != leading.isel(variant=0, drop=True)
    table = table.drop_vars("leading_word")
    table["eigenvalue"].attrs["units"] = "1/time, two units of time are a population round"
    return stamp(table, "variant_table", reference=names[0])


def named_stacks(policies: xr.Dataset) -> dict[str, xr.Dataset]:
    """The stack of policies of each variant, the reference first."""
    expect(policies, "variants", "policies")
    names = [str(name) for name in policies["variant"].values]
    return {
        name: validate_policy(policies.isel(variant=i), f"policies.isel(variant={i})") for i, name in enumerate(names)
    }


def _row(policy: xr.Dataset) -> xr.Dataset:
    """The theory of one policy."""
    table = stability_table(policy)
    candidates, points = (table.isel(entry=table["row"].values == row) for row in ("candidate", "fixed_point"))
    places = [list(candidates["word"].values).index(word) for word in words_of(policy)]
    if len(words_of(policy)) == 2:
        law = group_size_law(policy)
        kappa = law["kappa"].item() if law["attractors"].item() == 2 else np.nan
        reason = law.attrs["reason"]
    else:
        kappa, reason = np.nan, f"{name_of(policy)} has more than two words"
    return xr.Dataset(
        {
            "eigenvalue": ("word", candidates["eigenvalue"].values[places]),
            "is_fixed_point": ("word", candidates["is_fixed_point"].values[places].astype(bool)),
            "attractors": int(points["stable"].values.sum()),
            "strong_word": str(candidates["strong"].values[0]),
            "leading_word": str(solve(policy)["leading_word"].item()),
            "kappa": kappa,
            "reason": reason,
        }
    )
