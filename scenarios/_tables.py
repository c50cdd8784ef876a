"""What ``leakkit scenarios`` prints, as rich tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from leakkit.scenarios._scenario import Scenario

if TYPE_CHECKING:
    from leakkit.scenarios._matrix import Row

_STYLES = {"as expected": "green", "different": "bold red", "skipped": "dim"}


def print_rich(*parts: RenderableType) -> None:
    """Print to standard output, in colour where that is a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 100)
    for part in parts:
        console.print(part)


def overview(scenarios: Sequence[Scenario]) -> Table:
    """Name, what it is and what grows, under a heading for each family."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    family = None
    for scenario in scenarios:
        if scenario.family != family:
            table.add_row(Text(f"{'' if family is None else chr(10)}{scenario.family}", "bold"))
            family = scenario.family
        missing = scenario.missing()
        grows = ", ".join(scenario.grows) or "nothing grows: slow, but flat"
        note = f"; needs {', '.join(missing)}" if missing else ""
        what = Text(_prose(scenario.summary)).append(f"\n{grows}{note}", style="dim")
        table.add_row(Text(f"  {scenario.name}", style="dim" if missing else "cyan"), what)
    return table


def card(scenario: Scenario) -> list[RenderableType]:
    """Everything about one scenario, and the code of both forms."""
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True, style="bold")
    facts.add_column()
    for label, text in _facts(scenario):
        if text:
            facts.add_row(label, Text(text))
    heading = Text(scenario.name, style="bold cyan").append(f"  {_prose(scenario.summary)}", "")
    return [heading, "", Padding(facts, (0, 0, 1, 0)), _code(scenario)]


def matrix(rows: Sequence[Row]) -> Table:
    """One entry for each scenario, with its diagnosis where that has another name."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("scenario", "grows, per step", "leaky", "corrected"):
        table.add_column(title, no_wrap=True)
    table.add_column("seconds", justify="right")
    for row in rows:
        table.add_row(
            _named(row),
            Text("\n".join(row.rates)),
            row.verdict("leaky"),
            row.verdict("corrected"),
            f"{row.seconds:.0f}" if row.outcomes else row.state,
        )
    return table


def _named(row: Row) -> Text:
    text = Text(row.scenario.name, style=_STYLES[row.state])
    if row.diagnosis and row.diagnosis != row.scenario.name:
        text.append(f"\n  {row.diagnosis}", style="not bold dim")
    return text


def _facts(scenario: Scenario) -> list[tuple[str, str]]:
    return [
        ("family", scenario.family),
        ("grows", ", ".join(scenario.grows) or "nothing: slow, but flat"),
        ("rate", scenario.rate),
        ("symptom", scenario.symptom),
        ("cause", scenario.cause),
        ("remedy", scenario.remedy),
        ("diagnosis", scenario.diagnosis),
        ("seen on", scenario.seen_on),
        ("leaks on", ", ".join(f"{name} {span}" for name, span in scenario.leaks_on.items())),
        ("here", "leaks" if scenario.expected("leaky") == "grows" else "must be flat"),
        ("accepts", ", ".join(f"{name} {value}" for name, value in scenario.accepts.items())),
        ("reports", ", ".join(scenario.reports)),
        ("file", str(scenario.source or "")),
    ]


def _code(scenario: Scenario) -> Syntax:
    text = scenario.source.read_text("utf-8") if scenario.source else ""
    forms = text[text.find("\n)\n") + 3 :].strip("\n")  # what follows the card
    return Syntax(forms, "python", background_color="default")


def _prose(text: str) -> str:
    return text.replace("``", "`")
