"""The answers of the memory-conflict probe of [002] under Mechanism 2."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from meanfield import InputError
from meanfield.toolbox import one_of, real_numbers, shown, whole_number

RESPONSES = ("private_evidence", "social_evidence", "other_private_compatible", "other_incompatible")
EVIDENCE = {"weak_private_evidence": "weak", "strong_private_evidence": "strong"}
RELATIONS = ("compatible", "incompatible")
N_COUNTRIES = 28
ALONE = "where evidence is strong nothing but the target fits the crop"


def memory_conflict_response(
    social_share: float | np.ndarray,
    *,
    evidence: str,
    relation: str,
    uptake: float,
    rewrite: float,
    compatible: float = 1.0,
    leak: float,
    similarity: float = 1.0,
    n_countries: int = N_COUNTRIES,
) -> Float[np.ndarray, "*share 4"]:
    """The probabilities of the four answers in the memory-conflict probe, from [002] Eqs. 5, 6, 10 and 11.

    An agent sees a crop and a memory of eight entries, a share r of them for a lure S and the others for the target T.
    In the equations it holds x = p, hears one message M = (1 - r) e_T + r e_S, and draws its answer from its new
    belief. The countries form four groups of equal labels, on which the equations close:

    - p has the weight 1 in T and the other countries compatible with the crop, and ε elsewhere. Under weak evidence
      there are n - 1 others, S among them if `relation` is 'compatible'; under strong evidence there are none.
    - C[k, l] = p[k] s[k, l], with s = 1 for k = l and σ otherwise. With σ = 1 a report only says to look at the crop
      again: C M is p, and v in Eq. 6 is (1 - α(1 - γ)) p + α(1 - γ) M, where α(1 - γ) is the part taken up literally.
      With σ = 0 a report stays as it is, and γ has no effect on a compatible one.

    Parameters
    ----------
    social_share
        r in [0, 1], any shape.
    evidence, relation
        'weak' or 'strong'; of the lure, 'compatible' or 'incompatible'.
    uptake, rewrite
        α and γ, in [0, 1].
    compatible
        n, the number of countries compatible with the crop under weak evidence, T among them; at least 2 with a
        compatible lure, at most `n_countries` - 1 with an incompatible one. A mean over trials need not be whole.
    leak
        ε in (0, 1], the weight of a country that does not fit the crop.
    similarity
        σ in [0, 1].
    n_countries
        K.

    Returns
    -------
    Probabilities of T, of S, of any other compatible and of any other incompatible country, in the last dim.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    fit : the parameters from a probe

    Examples
    --------
    An agent takes up half of what it is told. It rewrites nothing, or it fits every report to what it sees.

    >>> from theory.flag_game.mechanism2 import memory_conflict_response
    >>> given = {"evidence": "strong", "relation": "incompatible", "uptake": 0.5, "leak": 0.1}
    >>> memory_conflict_response(1.0, rewrite=0.0, **given).round(2)
    array([0.61, 0.23, 0.  , 0.16])
    >>> memory_conflict_response(1.0, rewrite=1.0, **given).round(2)
    array([0.79, 0.01, 0.  , 0.2 ])
    """
    shares = {"social_share": social_share, "uptake": uptake, "rewrite": rewrite, "similarity": similarity}
    for name, value in (shares | {"leak": leak, "compatible": compatible}).items():
        if not real_numbers(value, name).size:
            raise InputError(f"{name} = {shown(value)}: expected numbers")
        if name != "compatible" and not ((np.asarray(value) >= 0) & (np.asarray(value) <= 1)).all():
            raise InputError(f"{name} = {value!r}: expected from 0 to 1")
    whole_number("n_countries", n_countries, 2)
    for name, value, known in (("evidence", evidence, EVIDENCE.values()), ("relation", relation, RELATIONS)):
        one_of(name, value, known)
    if leak == 0:
        raise InputError("leak = 0: expected a number above 0, so that every answer is possible")
    least, most = (2, n_countries) if relation == "compatible" else (1, n_countries - 1)
    if evidence == "weak" and not least <= compatible <= most:
        raise InputError(f"compatible = {compatible}: expected from {least} to {most}")
    if evidence == "strong" and relation == "compatible":
        raise InputError(f"relation = 'compatible': {ALONE}")
    r = np.asarray(social_share, dtype=np.float64)
    others = 0.0 if evidence == "strong" else compatible - (2 if relation == "compatible" else 1)
    number = np.array([1.0, 1.0, others, n_countries - 2 - others])
    weight = np.array([1.0, 1.0 if relation == "compatible" else leak, 1.0, leak])
    return grounded_answers(r, weight, number, uptake, rewrite, similarity)


def grounded_answers(
    r: np.ndarray,
    weight: np.ndarray,
    number: np.ndarray,
    uptake: float | np.ndarray,
    rewrite: float | np.ndarray,
    similarity: float,
) -> np.ndarray:
    """The equations on four groups of `number` labels of anchor `weight` each; the first two groups are T and S.

    `weight` and `number` have the shape (4,) or (..., 4), the others the shape of `r` or none.
    """
    alpha, gamma = np.asarray(uptake)[..., None], np.asarray(rewrite)[..., None]
    p = weight / (weight * number).sum(-1, keepdims=True)  # of one label
    message = np.zeros((*r.shape, 4))
    message[..., 0], message[..., 1] = 1 - r, r
    supported = p * (similarity + (1 - similarity) * message)
    # Positive, because the anchor leaks.
    rewritten = supported / (supported * number).sum(-1, keepdims=True)
    moved = (1 - alpha) * p + alpha * ((1 - gamma) * message + gamma * rewritten)
    grounded = moved * p * number
    return grounded / grounded.sum(-1, keepdims=True)
