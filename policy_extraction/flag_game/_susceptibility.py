"""The line of a prompt about social evidence."""

from __future__ import annotations

from meanfield import InputError
from meanfield.toolbox import instance, real_number
from policy_extraction.flag_game._prompt_file import FLAG_GAME_002
from policy_extraction.flag_game._prompts import FlagGamePrompts


def susceptibility_line(alpha: float, protocol: str = "pairwise", prompts: FlagGamePrompts = FLAG_GAME_002) -> str:
    """The line about social evidence at α: one of five sentences, which change at 0.2, 0.4, 0.6 and 0.8.

    A bound belongs to the range below it. Source: [002] Appendix D, table.

    Parameters
    ----------
    alpha
        Social-evidence uptake, in [0, 1].
    protocol
        'pairwise' or 'broadcast'; prompts of observers and managers have no such line.
    prompts
        The prompts.

    Raises
    ------
    InputError
        If α or the protocol is out of range.

    See Also
    --------
    play : a game with the line

    Examples
    --------
    >>> from policy_extraction.flag_game import susceptibility_line
    >>> for alpha in (0.2, 0.21):
    ...     print(susceptibility_line(alpha))
    Rely mostly on your own crop and treat transcript memory as weak evidence.
    Give somewhat more weight to your own crop than to transcript memory.
    """
    check_alpha(alpha, protocol)
    instance("prompts", prompts, FlagGamePrompts)
    task = prompts.message if protocol == "pairwise" else prompts.decision
    return task.line(alpha).rstrip("\n")


def check_alpha(alpha: float | None, protocol: str) -> None:
    """InputError unless α is in [0, 1] and the protocol has a line, or α is None."""
    if alpha is None:
        return
    real_number("alpha", alpha, least=0, most=1)
    if protocol not in ("pairwise", "broadcast"):
        raise InputError(f"alpha = {alpha}: there is no such line in the {protocol} protocol; expected None")
