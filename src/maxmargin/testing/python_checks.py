"""Checks of a user's model in plain Python."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import numpy as np

from maxmargin.models.user import PythonBound, PythonModel, UserModel, number, short, sparse_vector
from maxmargin.testing.compare import same, same_output
from maxmargin.testing.report import Report

__all__ = ["check_python"]

MOST_OUTPUTS = 4096
MOST_SEEN = 40
PAIRS = 5  # outputs of an example to compare all costs of
TOLERANCE = 1e-7
FAILED = object()
ARGUMENTS = {
    "joint_features": ("x", "y"), "cost": ("y_true", "y"), "argmax": ("x", "w"), "slack_argmax": ("x", "w", "y_true"),
    "constrained_argmax": ("x", "w", "y_true", "cost_weight", "low", "high"), "is_valid": ("x", "y"),
}  # fmt: skip
Outputs = Callable[[Any], Iterable[object]]
Angle = tuple[float, float, float]  # a cost weight, the least and the largest ratio of cost to 1 - w . psi


@dataclass
class Seen:
    """An output that occurred, with its joint features and its cost."""

    y: object
    indices: np.ndarray
    values: np.ndarray
    cost: float

    def objective(self, w: np.ndarray, cost_weight: float) -> float:
        return float(w[self.indices] @ self.values) + cost_weight * self.cost

    def slack_value(self, w: np.ndarray, truth: Seen) -> float:
        return self.cost * (1.0 - truth.objective(w, 0.0) + self.objective(w, 0.0))


def check_python(
    model: UserModel, X: object, Y: object, n_trials: int, rng: np.random.Generator, outputs: Outputs | None
) -> Report:
    """All checks of :func:`maxmargin.testing.check_model` for a user's model."""
    report = Report(type(model).__name__)
    try:
        bound = PythonModel(model).bind(X, Y)
        if model.n_weights(X, Y) != bound.n_weights:
            report.problem("n_weights", "n_weights gives different answers for the same data; it must not.")
    except (TypeError, ValueError) as error:
        report.problem("bind", str(error))
        return report
    except Exception as error:
        report.problem("bind", _raised("n_weights", error))
        return report
    optional = {name: hasattr(model, name) for name in ("is_valid", "slack_argmax", "constrained_argmax")}
    report.capabilities |= {"exact": "exact" in bound.capabilities, **optional}
    visitor = _Visitor(report, bound, rng, outputs)
    order = rng.permutation(bound.n_examples)
    for trial in range(n_trials):
        # w = 0 first: all scores tie, and only the cost decides
        w = rng.normal(size=bound.n_weights) * (0.0, 1.0, 0.1, 10.0)[trial % 4]
        visitor.visit(int(order[trial % len(order)]), w)
    visitor.finish()
    try:
        pickle.loads(pickle.dumps(model))
        report.capabilities["picklable"] = True
    except Exception as error:
        report.capabilities["picklable"] = False
        report.warning("pickle", f"the model cannot be pickled ({error}); worker processes need to pickle it.")
    return report


def _raised(name: str, error: Exception) -> str:
    return f"{name} raised {type(error).__name__}: {error}"


@dataclass
class _Visitor:
    """Calls the model, collects its outputs for each example, and compares them."""

    report: Report
    bound: PythonBound
    rng: np.random.Generator
    outputs: Outputs | None
    seen: dict[int, list[Seen]] = field(default_factory=dict)
    truths: dict[int, Seen | None] = field(default_factory=dict)
    listed: dict[int, list[object]] = field(default_factory=dict)
    questions: dict[int, list[tuple[np.ndarray, float, Seen]]] = field(default_factory=dict)  # w, cost weight, answer
    slack_answers: list[tuple[int, np.ndarray, Seen]] = field(default_factory=list)
    angle_answers: list[tuple[int, np.ndarray, Angle, Seen | None]] = field(default_factory=list)
    negative: bool = True

    def visit(self, i: int, w: np.ndarray) -> None:
        """All questions about one example at one weight vector."""
        y_true, report = self.bound.truth(i), self.report
        if i not in self.seen:
            self._first_visit(i)
        before = self._features(i, y_true)
        rescaled = float(self.rng.uniform(0.1, 3.0))
        answers = {c: self._question(i, w, y_true, c) for c in (0.0, 1.0, rescaled)}
        predicted = self._question(i, w, None, 0.0)
        if answers[1.0] is not None:
            again = self._argmax(i, w, y_true, 1.0)
            if again is not FAILED and not same(again, answers[1.0].y):
                gave = f"argmax gave two different outputs, {short(answers[1.0].y)} and {short(again)}"
                rule = "it must be deterministic, also among ties"
                self._problem(i, "argmax random", f"{gave}, for the same arguments; {rule}.")
        self._truth_ignored(i, w, answers[0.0], predicted)
        self._nothing_kept(i, w)
        self._negative_weight(i, w)
        if self.report.capabilities["slack_argmax"]:
            self._slack_question(i, w)
        if self.report.capabilities["constrained_argmax"]:
            self._angle_question(i, w)
        after = self._features(i, y_true)
        if before is not None and after is not None and not same(before, after) and not report.has("features random"):
            found = "joint_features of the same output changed after argmax was called with other weights"
            rule = "phi(x, y) may not depend on w, the score must be linear in w"
            self._problem(i, "features depend on w", f"{found}; {rule}.")

    def _first_visit(self, i: int) -> None:
        x, y_true = self.bound.X[i], self.bound.truth(i)
        self.seen[i], self.questions[i] = [], []
        self._valid(i, y_true, "the given output")
        self.truths[i] = truth = self._note(i, y_true, "the true output")
        if truth is not None and truth.cost != 0.0:
            self._problem(i, "cost of itself", f"cost of the true output is {truth.cost:g}, not 0.")
        if self.outputs is None:
            return
        listed = list(islice(self.outputs(x), MOST_OUTPUTS + 1))
        if len(listed) > MOST_OUTPUTS:
            text = f"example {i} has more than {MOST_OUTPUTS} outputs; only the first are compared."
            self.report.warning("many", text)
        else:
            self.listed[i] = listed
        others = [y for y in listed[:MOST_OUTPUTS] if not same_output(y, y_true)]
        if len(others) == len(listed):
            self.report.warning("unlisted", f"example {i}: outputs(x) leaves out the true output {short(y_true)}.")
        for y in others:
            record = self._record(i, y, "the output")
            self.seen[i] += [] if record is None else [record]

    def _problem(self, i: int, kind: str, text: str) -> None:
        self.report.problem(kind, f"example {i}: {text}")

    # calls of the model's functions

    def _call(self, name: str, i: int, *args: object, **kwargs: object) -> Any:
        """Call a function of the model; report what it raises and which arguments it changes."""
        try:
            held = copy.deepcopy((args, kwargs))
        except Exception:
            held = None
        try:
            value = getattr(self.bound.layout.model, name)(*args, **kwargs)
        except Exception as error:
            self._problem(i, f"{name} raises", _raised(name, error))
            return FAILED
        if held is not None:
            pairs = [*zip(ARGUMENTS[name], args, held[0], strict=True)]
            for what, now, then in pairs + [(key, kwargs[key], held[1][key]) for key in kwargs]:
                if not same(now, then):
                    self._problem(i, f"{name} changes {what}", f"{name} changed its argument {what}; work on a copy.")
        return value

    def _features(self, i: int, y: object) -> tuple[np.ndarray, np.ndarray] | None:
        found = []
        for _ in range(2):
            phi = self._call("joint_features", i, self.bound.X[i], y)
            if phi is FAILED:
                return None
            try:
                found.append(sparse_vector(phi, self.bound.n_weights, i))
            except ValueError as error:
                kinds = ("length", "NaN", "index", "numbers", "indices")
                kind = next((kind for kind in kinds if kind in str(error)), "form")
                self.report.problem(f"features {kind}", str(error))
                return None
        if not same(found[0], found[1]):
            self._problem(i, "features random", "joint_features gave two different vectors.")
        return found[0]

    def _cost(self, i: int, a: object, b: object, what: str) -> float | None:
        cost = self._call("cost", i, a, b)
        if cost is FAILED:
            return None
        try:
            return number(cost, "cost", i)
        except ValueError as error:
            self.report.problem("cost", f"{error} It was asked for {what}.")
            return float(cost) if isinstance(cost, (int, float)) and np.isfinite(cost) else None  # go on if it is one

    def _argmax(self, i: int, w: np.ndarray, y_true: object, cost_weight: float) -> object:
        told: dict[str, object] = {} if y_true is None else {"y_true": y_true, "cost_weight": cost_weight}
        return self._output("argmax", i, self.bound.X[i], w, **told)

    def _output(self, name: str, i: int, *args: object, **kwargs: object) -> object:
        y = self._call(name, i, *args, **kwargs)
        if y is None:
            self._problem(i, f"{name} None", f"{name} returned None; it must return an output.")
        return FAILED if y is None else y

    def _valid(self, i: int, y: object, what: str) -> None:
        if self.report.capabilities["is_valid"]:
            valid = self._call("is_valid", i, self.bound.X[i], y)
            if valid is not FAILED and not valid:
                self._problem(i, f"illegal {what}", f"{what}, {short(y)}, is illegal by is_valid.")

    # comparisons of its answers

    def _record(self, i: int, y: object, what: str) -> Seen | None:
        features = self._features(i, y)
        cost = self._cost(i, self.bound.truth(i), y, f"{what} {short(y)}")
        # a deep copy: the model may overwrite the output later
        return None if features is None or cost is None else Seen(copy.deepcopy(y), *features, cost)

    def _note(self, i: int, y: object, what: str) -> Seen | None:
        """The record of an output; new ones are added to those seen."""
        for known in self.seen[i]:
            if same(known.y, y):
                return known
        record = self._record(i, y, what)
        if record is not None and len(self.seen[i]) < MOST_SEEN:
            self.seen[i].append(record)
        return record

    def _question(self, i: int, w: np.ndarray, y_true: object, cost_weight: float) -> Seen | None:
        y = self._argmax(i, w.copy(), y_true, cost_weight)
        if y is FAILED:
            return None
        self._valid(i, y, "the output of argmax")
        if i in self.listed and not any(same_output(y, listed) for listed in self.listed[i]):
            self._problem(i, "unlisted answer", f"argmax returned {short(y)}, not among outputs(x).")
        answer = self._note(i, y, "an output of argmax")
        if answer is not None:
            self.questions[i].append((w, cost_weight, answer))
        return answer

    def _truth_ignored(self, i: int, w: np.ndarray, told: Seen | None, predicted: Seen | None) -> None:
        others = [known for known in self.seen[i] if not same_output(known.y, self.bound.truth(i))]
        misled = self._question(i, w, others[-1].y, 0.0) if others else None
        scores = [answer.objective(w, 0.0) for answer in (told, misled, predicted) if answer is not None]
        if scores and max(scores) - min(scores) > _slack(*scores):
            found = f"the score of argmax depends on y_true ({min(scores):.6g} and {max(scores):.6g})"
            self._problem(i, "y_true matters", f"with cost_weight=0 {found}; only the cost may depend on y_true.")

    def _nothing_kept(self, i: int, w: np.ndarray) -> None:
        """An array reused with new numbers must give the same answer as a fresh one."""
        other, used, y_true = self.rng.normal(size=len(w)), w.copy(), self.bound.truth(i)
        self._argmax(i, used, y_true, 1.0)
        used[:] = other
        reused, fresh = self._argmax(i, used, y_true, 1.0), self._question(i, other, y_true, 1.0)
        if reused is FAILED or fresh is None:
            return
        answer = self._note(i, reused, "an output of argmax")
        if answer is None or self.report.has("argmax random"):
            return
        got, best = answer.objective(other, 1.0), fresh.objective(other, 1.0)
        if abs(best - got) > _slack(best, got):
            found = "argmax answers differently when the array w is used again with new numbers"
            self._problem(i, "w kept", f"{found}; it keeps w (or something made from it) between calls.")

    def _negative_weight(self, i: int, w: np.ndarray) -> None:
        """An optional capability, which only the ramp loss needs."""
        if not self.negative:
            return
        try:
            y = self.bound.layout.model.argmax(self.bound.X[i], w.copy(), y_true=self.bound.truth(i), cost_weight=-1.0)
        except Exception:
            y = None
        answer = None if y is None else self._note(i, y, "an output of argmax")
        if answer is None:
            self.negative = False
            return
        got = answer.objective(w, -1.0)
        best = max((known.objective(w, -1.0) for known in self.seen[i]), default=got)
        self.negative = best - got <= _slack(best, got)

    def _slack_question(self, i: int, w: np.ndarray) -> None:
        """An optional capability, which slack rescaling needs."""
        y = self._output("slack_argmax", i, self.bound.X[i], w.copy(), self.bound.truth(i))
        if y is not FAILED:
            self._valid(i, y, "the output of slack_argmax")
            answer = self._note(i, y, "an output of slack_argmax")
            if answer is not None:
                self.slack_answers.append((i, w, answer))

    def _compare_slack(self, i: int, w: np.ndarray, answer: Seen) -> None:
        truth = self.truths[i]
        if truth is None:
            return
        got = answer.slack_value(w, truth)
        best = max(self.seen[i], key=lambda known: known.slack_value(w, truth), default=answer)
        top = best.slack_value(w, truth)
        if top - got > _slack(top, got, *(known.objective(w, 0.0) for known in (truth, answer, best))):
            found = f"slack_argmax returned {short(answer.y)} of value {got:.6g}, but {short(best.y)} has {top:.6g}"
            rule = "it must maximise cost(y_true, y) * (1 - w . (phi(x, y_true) - phi(x, y)))"
            self._problem(i, "slack not the maximum", f"{found}; {rule}.")

    def _angle_question(self, i: int, w: np.ndarray) -> None:
        """An optional capability, which angular search needs."""
        low, high = np.sort(self.rng.uniform(0.0, 3.0, 2)) if self.rng.random() < 0.5 else (0.0, np.inf)
        angle = (float(self.rng.uniform(0.1, 3.0)), float(low), float(high))
        y = self._call("constrained_argmax", i, self.bound.X[i], w.copy(), self.bound.truth(i), *angle)
        if y is not FAILED:
            answer = None if y is None else self._note(i, y, "an output of constrained_argmax")
            self.angle_answers.append((i, w, angle, answer))

    def _compare_angle(self, i: int, w: np.ndarray, angle: Angle, answer: Seen | None) -> None:
        truth, (cost_weight, low, high) = self.truths[i], angle
        if truth is None:
            return
        asked = f"cost between {low:.6g} and {high:.6g} times 1 - w . psi"
        score = truth.objective(w, 0.0)

        def is_inside(known: Seen, room: float) -> bool:
            h = 1.0 - score + known.objective(w, 0.0)
            room *= max(1.0, abs(score), abs(h))
            return h > room and known.cost > 0.0 and low * (h + room) <= known.cost <= high * (h - room)

        if answer is not None and not is_inside(answer, -TOLERANCE):
            self._problem(i, "outside the angle", f"constrained_argmax returned {short(answer.y)}; asked was {asked}.")
            return
        best = max(
            (known for known in self.seen[i] if is_inside(known, TOLERANCE)),
            key=lambda known: known.objective(w, cost_weight),
            default=None,
        )
        if best is None:
            return
        top, got = best.objective(w, cost_weight), -np.inf if answer is None else answer.objective(w, cost_weight)
        if answer is None or top - got > _slack(top, got, score):
            found = f"constrained_argmax returned {'None' if answer is None else short(answer.y)} for {asked}"
            self._problem(i, "angle not the maximum", f"{found}, but {short(best.y)} is there with {top:.6g}.")

    def finish(self) -> None:
        """Compare every answer with every output seen for its example, and costs between outputs."""
        report = self.report
        for slack_answer in self.slack_answers:
            self._compare_slack(*slack_answer)
        for angle_answer in self.angle_answers:
            self._compare_angle(*angle_answer)
        for i, questions in self.questions.items():
            for question in questions:
                self._compare(i, *question)
            for a, b in product(self.seen[i][:PAIRS], repeat=2):
                cost = self._cost(i, a.y, b.y, f"{short(b.y)} where {short(a.y)} is true")
                if a is b and cost:
                    self._problem(i, "cost of itself", f"cost of {short(a.y)} with itself is {cost:g}.")
                if a is self.truths[i] and cost is not None and cost != b.cost:
                    self._problem(i, "cost random", f"cost gave {b.cost:g} and {cost:g} for the same outputs.")
        report.capabilities["negative_cost_weight"] = self.negative
        if max(map(len, self.seen.values())) < 2:
            report.warning("one output", "argmax gave only the true output at all weights; little could be compared.")
        elif not any(known.cost for seen in self.seen.values() for known in seen) and report.ok:
            report.warning("no cost", "cost is 0 for all outputs seen; without costs there is no margin to learn.")

    def _compare(self, i: int, w: np.ndarray, c: float, answer: Seen) -> None:
        got = answer.objective(w, c)
        truth, exact = self.truths[i], "exact" in self.bound.capabilities
        # a prediction (cost_weight 0) does not know the truth, so an inexact search may end below it
        must = exact or c != 0.0
        if must and truth is not None and truth.objective(w, c) - got > _slack(truth.objective(w, c), got):
            found = f"returned an output that scores below the true one ({got:.6g} against {truth.objective(w, c):.6g})"
            rule = "it must maximise w . phi(x, y) + cost_weight * cost(y_true, y)"
            self._problem(i, "below truth", f"argmax with cost_weight={c:g} {found}; {rule}.")
            return
        best = max(self.seen[i], key=lambda known: known.objective(w, c), default=answer)
        top = best.objective(w, c)
        if top - got > _slack(top, got):
            found = f"returned {short(answer.y)} of objective {got:.6g}, but {short(best.y)} has {top:.6g}"
            text = f"example {i}: argmax with cost_weight={c:g} {found}"
            if exact:
                self.report.problem("not the maximum", f"{text}; correct argmax, or declare exact = False.")
            else:
                self.report.warning("not the maximum", f"{text}; allowed, because the model says exact = False.")


def _slack(*values: float) -> float:
    return TOLERANCE * max(1.0, *map(abs, values))
