r"""Tables for LaTeX: booktabs, with a caption and a label, over several pages where they are long."""

from __future__ import annotations

from collections.abc import Sequence

LONG = 40  # lines that a page holds
GREEK = {"κ": "\\kappa", "λ": "\\lambda", "σ": "\\sigma", "Φ": "\\Phi", "√": "\\surd", "ᵀ": "^T"}
ESCAPED = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {symbol: f"${name}$" for symbol, name in GREEK.items()}
)


def latex_table(columns: str, header: str, body: Sequence[str], caption: str, label: str) -> str:
    r"""A table as text; it needs `\usepackage{booktabs,longtable}`.

    `columns` is their alignment, as "lrr"; each line of `header` and `body` ends with `\\` or is a rule; the label gets
    "tab:" before it.
    """
    title = rf"\caption{{{caption}}}\label{{tab:{label}}}"
    head = [r"\toprule", header, r"\midrule"]
    if len(body) > LONG:
        opening = [rf"\begin{{longtable}}{{{columns}}}", rf"{title} \\", *head, r"\endfirsthead", *head, r"\endhead"]
        lines = [*opening, r"\bottomrule", r"\endlastfoot", *body, r"\end{longtable}"]
    else:
        opening = [r"\begin{table}", r"\centering", title, rf"\begin{{tabular}}{{{columns}}}", *head]
        lines = [*opening, *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join([r"% \usepackage{booktabs,longtable}", *lines]) + "\n"


def escaped(text: str) -> str:
    """Text as LaTeX prints it."""
    return " ".join(text.split()).translate(ESCAPED)


def fixed(value: float, decimals: int) -> str:
    """A number in math mode with so many decimals; zero has no sign, NaN is a dash."""
    if value != value:
        return "--"
    if abs(value) == float("inf"):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    text = f"{value:.{decimals}f}"
    return f"${text.removeprefix('-') if float(text) == 0 else text}$"


def power_of_ten(text: str) -> str:
    r"""A number in math mode from its text, 3e-06 as 3 \cdot 10^{-6}; '' stays ''."""
    if not text:
        return ""
    if float(text.removeprefix("1-")) == 0:
        return "$0$"
    mantissa, e, exponent = text.partition("e")
    return f"${mantissa} \\cdot 10^{{{int(exponent)}}}$" if e else f"${mantissa}$"
