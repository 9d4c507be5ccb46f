"""Personal norms, and the database in which an agent keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from meanfield import InputError
from meanfield.toolbox import instance, is_number, one_of, one_or_several

KINDS = ("injunctive", "descriptive")
SYNTHESIS_THRESHOLD = 350.0
STATES = {(True, True): "qualified", (False, False): "informed", (False, True): "superseded"}


@dataclass(frozen=True)
class PersonalNorm:
    """A standard of behaviour as one agent holds it, ⟨c, u, α, s_act, s_val⟩. Source: [003] Section 2.1.

    Parameters
    ----------
    content
        The text of the norm.
    utility
        Its importance to the agent, 1 to 100.
    kind
        'injunctive' (what ought to be done) or 'descriptive' (what people do).
    activated, valid
        Both for a norm that its agent created or accepted; neither for information that has not passed the check; valid
        only for a norm that an abstract one replaced.

    Raises
    ------
    InputError
        If a part is out of range, or the norm is activated but not valid.

    Examples
    --------
    >>> from theory.norms import PersonalNorm
    >>> heard = PersonalNorm("No smoking indoors.", 95, "injunctive", activated=False, valid=False)
    >>> heard.state, heard.qualified
    ('informed', False)
    """

    content: str
    utility: float
    kind: str
    activated: bool = True
    valid: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.content, str) or not self.content.strip():
            raise InputError(f"content = {self.content!r}: expected text")
        if not is_utility(self.utility):
            raise InputError(f"utility = {self.utility!r} of {self.content!r}: expected a number from 1 to 100")
        one_of("kind", self.kind, KINDS)
        if (self.activated, self.valid) not in list(STATES):
            expected = ", ".join(f"{flags} ({name})" for flags, name in STATES.items())
            raise InputError(f"(activated, valid) = {(self.activated, self.valid)}: expected {expected}")

    @property
    def state(self) -> str:
        """'qualified', 'informed' or 'superseded'."""
        return STATES[self.activated, self.valid]

    @property
    def qualified(self) -> bool:
        """Whether the norm is activated and valid: its agent acts by it."""
        return self.state == "qualified"


@dataclass(frozen=True)
class NormDatabase:
    """The personal norms of one agent; every change gives a new database. Source: [003] Sections 2.1 and 2.3.

    Parameters
    ----------
    norms
        In order of arrival; no two with the same content.

    Raises
    ------
    InputError
        If two norms have the same content.

    Examples
    --------
    Information counts as a norm once it is accepted, and norms of one theme may give way to an abstract one.

    >>> from theory.norms import NormDatabase, PersonalNorm
    >>> smoking, noise = PersonalNorm("No smoking.", 95, "injunctive"), PersonalNorm("Be quiet.", 85, "injunctive")
    >>> norms = NormDatabase((smoking,)).informed_of(noise)
    >>> norms.total_utility, norms.accepted("Be quiet.").total_utility
    (95.0, 180.0)
    >>> both = norms.accepted("Be quiet.").synthesised(["No smoking.", "Be quiet."], "Do not disturb.", "injunctive")
    >>> both.qualified
    (PersonalNorm(content='Do not disturb.', utility=90.0, kind='injunctive', activated=True, valid=True),)
    """

    norms: tuple[PersonalNorm, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "norms", tuple(instance("norms", n, PersonalNorm) for n in one_or_several(self.norms)))
        contents = [norm.content for norm in self.norms]
        for content in contents:
            if contents.count(content) > 1:
                raise InputError(f"norms hold {content!r} {contents.count(content)} times: expected it once")

    @property
    def qualified(self) -> tuple[PersonalNorm, ...]:
        """The norms that are activated and valid."""
        return tuple(norm for norm in self.norms if norm.qualified)

    @property
    def total_utility(self) -> float:
        """The sum of utilities of the qualified norms."""
        return float(sum(norm.utility for norm in self.qualified))

    def needs_synthesis(self, threshold: float = SYNTHESIS_THRESHOLD) -> bool:
        """Whether the total utility exceeds `threshold`."""
        return self.total_utility > threshold

    def find(self, content: str) -> PersonalNorm:
        """The norm with this content; InputError if there is none."""
        for norm in self.norms:
            if norm.content == content:
                return norm
        raise InputError(f"content = {content!r}: expected a norm of the database")

    def informed_of(self, norm: PersonalNorm) -> NormDatabase:
        """The database with `norm` as information: neither activated nor valid until it passes the check."""
        return NormDatabase((*self.norms, replace(instance("norm", norm, PersonalNorm), activated=False, valid=False)))

    def accepted(self, content: str) -> NormDatabase:
        """The database with the information `content` qualified: it passed the check."""
        norm = self.find(content)
        if norm.state != "informed":
            raise InputError(f"content = {content!r} is {norm.state}: expected a norm that is informed")
        return self._with([norm], activated=True, valid=True)

    def synthesised(
        self,
        contents: Sequence[str],
        abstract: str,
        kind: str,
        weights: Sequence[float] | None = None,
        *,
        with_others: bool = False,
    ) -> NormDatabase:
        """The database with the qualified norms `contents` superseded by a qualified abstract one.

        Parameters
        ----------
        contents
            Two or more norms of one theme.
        abstract, kind
            Content and kind of the abstract norm, which passed the check.
        weights
            Positive weights of the norms; the new utility is their weighted mean. Default: equal weights.
        with_others
            Whether the abstract norm also covers norms outside the database, so that one content is enough.

        Raises
        ------
        InputError
            If a norm is missing, not qualified or named twice, or the weights do not fit.
        """
        contents = one_or_several(contents)
        subset = [self.find(content) for content in contents]
        if len(subset) < (1 if with_others else 2) or len(set(contents)) < len(contents):
            least = "one" if with_others else "two"
            raise InputError(f"contents = {contents!r}: expected {least} or more different norms")
        for norm in subset:
            if not norm.qualified:
                raise InputError(f"contents hold {norm.content!r}, which is {norm.state}: expected qualified norms")
        utility = _weighted_mean([norm.utility for norm in subset], weights)
        general = PersonalNorm(abstract, utility, kind)
        return NormDatabase((*self._with(subset, activated=False, valid=True).norms, general))

    def _with(self, changed: Iterable[PersonalNorm], activated: bool, valid: bool) -> NormDatabase:
        contents = {norm.content for norm in changed}
        return NormDatabase(
            tuple(
                replace(norm, activated=activated, valid=valid) if norm.content in contents else norm
                for norm in self.norms
            )
        )


def is_utility(value: object) -> bool:
    """Whether `value` is a number from 1 to 100."""
    return is_number(value) and 1 <= value <= 100  # type: ignore[operator]


def _weighted_mean(utilities: Sequence[float], weights: Sequence[float] | None) -> float:
    weights = [1.0] * len(utilities) if weights is None else one_or_several(weights)
    if len(weights) != len(utilities) or not all(is_number(w) and w > 0 for w in weights):
        raise InputError(f"weights = {weights!r}: expected {len(utilities)} positive numbers")
    weights = [w / max(weights) for w in weights]  # sums of huge ones overflow
    mean = sum(w * u for w, u in zip(weights, utilities, strict=True)) / sum(weights)
    return min(max(mean, min(utilities)), max(utilities))  # a mean of 100s may round to more than 100
