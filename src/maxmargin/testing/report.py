"""The findings of a check."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ModelError", "Report"]


class ModelError(AssertionError):
    """A model breaks its contract. ``report`` lists all problems."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


@dataclass
class Report:
    """Problems (the model is wrong), warnings (it may be used with care) and capabilities."""

    model: str
    capabilities: dict[str, bool] = field(default_factory=dict)
    _problems: dict[str, list] = field(default_factory=dict)
    _warnings: dict[str, list] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self._problems

    @property
    def problems(self) -> list[str]:
        """One sentence per kind of problem, with the first example that shows it."""
        return [_with_count(text, count) for text, count in self._problems.values()]

    @property
    def warnings(self) -> list[str]:
        return [_with_count(text, count) for text, count in self._warnings.values()]

    def problem(self, kind: str, text: str) -> None:
        """Note a problem; further ones of the same kind are only counted."""
        self._problems.setdefault(kind, [text, 0])[1] += 1

    def warning(self, kind: str, text: str) -> None:
        """Note a warning; further ones of the same kind are only counted."""
        self._warnings.setdefault(kind, [text, 0])[1] += 1

    def has(self, kind: str) -> bool:
        return kind in self._problems

    def raise_problems(self) -> None:
        if not self.ok:
            raise ModelError(self)

    def __str__(self) -> str:
        found = f"{len(self.problems)} problems" if len(self.problems) != 1 else "1 problem"
        lines = [f"{self.model}: {'no problems' if self.ok else found}"]
        lines += [f"  {n}. {text}" for n, text in enumerate(self.problems, 1)]
        lines += [f"  warning: {text}" for text in self.warnings]
        lines += [f"  {name}: {'yes' if value else 'no'}" for name, value in self.capabilities.items()]
        return "\n".join(lines)


def _with_count(text: str, count: int) -> str:
    return text if count == 1 else f"{text} (seen {count} times)"
