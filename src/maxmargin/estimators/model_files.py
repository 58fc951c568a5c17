"""Fitted estimators in model files, and back: one way for all kinds.

===============  ====================================================================================================
``kind``         class of the estimator
``contents``     version of what follows; files of version 0.1 of the library have none
``parameters``   constructor arguments
``training``     certificate, status, passes, seconds, a hundred rows of the history
``layout``       class and facts of the layout; its arrays are the tensors ``layout.<name>``
``fitted``       what else the estimator has learned
``features``     its feature extractor, where it has one
``around``       parameters and what was learned of an estimator round another one; the rest is that of the inner one
===============  ====================================================================================================

and the weights as tensors; see :mod:`maxmargin.persistence.vectors`. Not stored: callbacks, a model to start from and
the state for a warm start. A cost that is a function is stored as its table.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.datasets.column_format import ColumnFormat
from maxmargin.estimators.registry import KINDS, RENAMED, Kind
from maxmargin.estimators.saveable import Extractor, Fitted, Saveable
from maxmargin.models.layout_state import StorableLayout
from maxmargin.models.user import Model, UserModel, as_model
from maxmargin.persistence.kinds import is_of_kind
from maxmargin.persistence.model_file import read_model, write_model
from maxmargin.persistence.values import pack_value, unpack_value
from maxmargin.persistence.vectors import pack_vector, unpack_vector
from maxmargin.solvers.status import Status

if TYPE_CHECKING:  # scikit-learn takes a second to load; a file that only predicts does without
    from maxmargin.estimators.base import Structured
    from maxmargin.estimators.calibrated_labels import CalibratedLabels
    from maxmargin.solvers.history import Table

__all__ = ["Contents", "as_mapping", "fitted_of", "load", "load_as", "save"]

CONTENTS = 2
HISTORY = 100  # rows of a history in a file, for reports
CURVES = ("pass", "seconds", "primal", "dual")
S = TypeVar("S", bound=Saveable)
T = TypeVar("T")
V = TypeVar("V", float, str)


@dataclass(frozen=True)
class Contents:
    """What a file says, not yet checked."""

    kind: str
    parameters: Mapping[str, object]
    training: Mapping[str, object]
    layout: tuple[str, Mapping[str, object], Mapping[str, np.ndarray]]  # class, facts, tensors
    weights: Mapping[str, np.ndarray]
    fitted: Mapping[str, object]
    features: Mapping[str, object] | None
    around: Mapping[str, object] | None = None


def save(estimator: Saveable, path: str | os.PathLike[str], precision: str = "float64") -> Path:
    """Write a fitted estimator (of ``KINDS``, or of a subclass) to one file. O(n_weights).

    Parameters
    ----------
    estimator : one of maxmargin's, fitted
    path : path-like
        Replaced when it exists, and only once the new file is complete.
    precision : {"float64", "float32"}
        Of the weights; float64 predicts exactly the same after :func:`load`, float32 takes about half the space.
    """
    estimator._check_fitted(values=False)  # what is wrong with the weights, the layout says below
    fitted = estimator._fitted()
    if fitted.inside is None:
        return write_model(path, *_packed(estimator, fitted, precision))
    header, tensors = _packed(fitted.inside, fitted.inside._fitted(), precision)
    around = {"parameters": _storable_parameters(estimator, fitted), "fitted": dict(fitted.facts)}
    header |= {"kind": _kind_of(type(estimator)), "around": pack_value(around, tensors, "around")}
    return write_model(path, header, tensors)


def _packed(estimator: Saveable, fitted: Fitted, precision: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Header and tensors of an estimator that is not built round another one."""
    layout, weights = fitted.layout, np.asarray(fitted.weights, np.float64)
    if weights.shape != (layout.n_weights,):
        raise ValueError(f"the layout has {layout.n_weights} weights, got an array of shape {weights.shape}.")
    layout.check_weights(weights)
    facts, arrays = layout.to_state()
    tensors = {f"layout.{name}": array for name, array in arrays.items()} | pack_vector("weights", weights, precision)
    parameters = _storable_parameters(estimator, fitted)
    try:
        described = pack_value({"kind": type(layout).__name__, "facts": facts}, tensors, "layout")
    except ValueError as error:
        raise ValueError(f"the labels, states or symbols cannot be stored: {error}.") from None
    header = {
        "kind": _kind_of(type(estimator)),
        "contents": str(CONTENTS),
        "library_version": str(vars(sys.modules[__name__.partition(".")[0]]).get("__version__", "unknown")),
        "parameters": pack_value(parameters, tensors, "parameters", _modules("component")),
        "training": pack_value(_training_facts(vars(estimator)), tensors, "training"),
        "layout": described,
        "fitted": pack_value(dict(fitted.facts), tensors, "fitted"),
    }
    if fitted.features is not None:
        given = _parameters(estimator)["features"] is not None
        header["features"] = _pack_features(fitted.features, given, tensors)
    return header, tensors


def load(path: str | os.PathLike[str], *, model: object = None, verify: bool = True) -> Structured | CalibratedLabels:
    """The fitted estimator in a model file, of whichever kind it is.

    Parameters
    ----------
    path : path-like
        An OSError says that it may not be read; a ValueError that it is damaged, of another kind, or a newer version.
    model : object, optional
        For a StructuredSVM that was trained with a model of your own: that model again; a file does not hold code.
    verify : bool
        Check the data against its checksum; False saves reading a huge file twice.
    """
    header, tensors = read_model(path, verify=verify)
    kind = header.get("kind", "model of no kind")
    if kind not in _modules("estimator"):
        loads = f"this version loads {', '.join(_modules('estimator'))}"
        raise ValueError(f"{path} holds a {kind[:80]}, {loads}. Check the path, or upgrade maxmargin.")
    return _rebuilt(path, header, tensors, partial(_restored, _known(kind, "estimator"), model=model))


def load_as(cls: type[S], path: str | os.PathLike[str], *, model: object = None, verify: bool = True) -> S:
    """The fitted estimator in a model file that must hold this class, one of ``KINDS`` or a subclass of one."""
    kind = _kind_of(cls)
    header, tensors = read_model(path, verify=verify)
    if header.get("kind") != kind:
        found = header.get("kind", "model of no kind")[:80]
        advice = "check the path, or take maxmargin.load, which loads every kind."
        raise ValueError(f"{path} holds a {found}, not a {kind}; {advice}")
    return _rebuilt(path, header, tensors, partial(_restored, cls, model=model))


def fitted_of(
    path: str | os.PathLike[str], header: dict[str, str], tensors: dict[str, np.ndarray]
) -> tuple[Fitted, dict[str, object]]:
    """What the file of :func:`~maxmargin.persistence.model_file.read_model` has learned, and how its training went.

    Checked as :func:`load` does, but without the estimator: this is quick and needs neither scikit-learn nor a solver.
    """

    def parts(contents: Contents) -> tuple[Fitted, dict[str, object]]:
        return _fitted_and_parameters(contents, None)[0], _training(contents.training)

    return _rebuilt(path, header, tensors, parts)


def _rebuilt(
    path: str | os.PathLike[str],
    header: dict[str, str],
    tensors: dict[str, np.ndarray],
    made: Callable[[Contents], T],
) -> T:
    try:
        if "contents" not in header:
            from maxmargin.estimators.model_files_0_1 import read_0_1

            return made(read_0_1(header, tensors, _make))
        if header["contents"] != str(CONTENTS):
            raise ValueError(f"its contents have version {header['contents'][:40]!r}; upgrade maxmargin")
        return made(_read(header, tensors))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        writer = header.get("library_version", "unknown")[:40]
        what = f"its {error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
        advice = f"It was written by version {writer}; save the model again, or load it with that version."
        raise ValueError(f"{path} cannot be loaded: {what[:500]}. {'' if 'model=' in what else advice}") from error


def _read(header: dict[str, str], tensors: dict[str, np.ndarray]) -> Contents:
    """The contents of a file of today."""
    layout = as_mapping(unpack_value(header["layout"], tensors), "layout")
    own = {name.removeprefix("layout."): array for name, array in tensors.items() if name.startswith("layout.")}
    features = unpack_value(header["features"], tensors) if "features" in header else None
    return Contents(
        kind=header["kind"],
        parameters=as_mapping(unpack_value(header["parameters"], tensors, _make), "parameters"),
        training=as_mapping(unpack_value(header["training"], tensors), "training"),
        layout=(str(layout["kind"]), as_mapping(layout["facts"], "facts of the layout"), own),
        weights=tensors,
        fitted=as_mapping(unpack_value(header["fitted"], tensors), "fitted values"),
        features=None if features is None else as_mapping(features, "feature extractor"),
        around=as_mapping(unpack_value(header["around"], tensors), "outer estimator") if "around" in header else None,
    )


def _restored(cls: type[S], contents: Contents, model: object) -> S:
    """The estimator; everything that a file says is checked here, or by what it is given to."""
    inside = KINDS[contents.kind].inside
    if inside:
        return _restored_around(
            cls, _restored(_known(inside, "estimator"), replace(contents, kind=inside), model), contents
        )
    fitted, parameters = _fitted_and_parameters(contents, model)
    _check_parameters(cls, parameters)
    estimator = cls(**parameters)
    estimator._take_fitted(fitted)
    for attribute, value in _training(contents.training).items():
        setattr(estimator, attribute, value)
    return estimator


def _restored_around(cls: type[S], inner: Saveable, contents: Contents) -> S:
    """The estimator round a restored one."""
    around = as_mapping(contents.around, "outer estimator")
    parameters = as_mapping(around["parameters"], "parameters")
    parameters["estimator"] = type(inner)(**_parameters(inner))
    _check_parameters(cls, parameters)
    estimator, core = cls(**parameters), inner._fitted()
    facts = as_mapping(around["fitted"], "fitted values")
    estimator._take_fitted(Fitted(core.layout, core.weights, facts, inside=inner))
    return estimator


def _fitted_and_parameters(contents: Contents, model: object) -> tuple[Fitted, dict[str, object]]:
    parameters = _renamed(contents.kind, contents.parameters)
    if model is not None:
        if contents.kind != "StructuredSVM":
            raise ValueError(f"a {contents.kind} needs no model; leave model= out")
        parameters["model"] = model
    name, facts, tensors = contents.layout
    kind: Any = _known(name, "layout")
    own_model = (model,) if name == "PythonLayout" else ()
    layout: StorableLayout = kind.from_state(facts, tensors, *own_model)
    if contents.kind == "StructuredSVM" and "model" not in parameters:
        raise ValueError("the file does not hold its model; give it again: StructuredSVM.load(path, model=...)")
    _check_pair(contents.kind, name, parameters)
    weights = unpack_vector("weights", contents.weights, layout.n_weights)
    layout.check_weights(weights)
    if parameters.get("features") is not None:
        raise ValueError("its parameter 'features' is not None, but fitted features have a place of their own")
    features = None
    if contents.features is not None:
        extractor: Any = _known(contents.features["kind"], "features")
        state = contents.features["state"]
        if KINDS[extractor.__name__].layout != name or not isinstance(state, tuple):
            raise ValueError(f"its feature extractor {extractor.__name__} is not one for a {name}")
        made: Extractor = extractor.from_state(*state)
        features, parameters["features"] = made, made if contents.features["given"] is True else None
    return Fitted(layout, weights, contents.fitted, features), parameters


def _check_pair(kind: str, layout: str, parameters: Mapping[str, object]) -> None:
    """Refuse a layout that is not the one of the estimator, or of its model where it takes any."""
    whose, advice, expected = kind, "", KINDS[kind].layout
    if kind == "StructuredSVM":
        given = cast("Model | UserModel", parameters["model"])
        whose, advice = type(given).__name__, "; it is not the model that it was trained with"
        binding = type(as_model(given))
        known = KINDS.get(binding.__name__, Kind("", ""))
        own = known.module != binding.__module__  # a class of the user's that binds itself: any layout but functions'
        expected = known.layout if not own else layout if layout != "PythonLayout" else ""
    if layout != expected:
        raise ValueError(f"its layout is a {layout}, which a {whose} cannot have{advice}")


def _modules(role: str) -> dict[str, str]:
    """Modules of the classes of a role, by name."""
    return {name: kind.module for name, kind in KINDS.items() if kind.role == role}


def _kind_of(cls: type) -> str:
    return next(base.__name__ for base in cls.__mro__ if base.__name__ in _modules("estimator"))


def _known(name: object, role: str) -> type:
    """The class behind a name in a file."""
    if type(name) is not str or name not in _modules(role):
        what = {"features": "a feature extractor", "component": "an object"}.get(role, f"a {role}")
        raise ValueError(f"it has {what} of the unknown kind {str(name)[:40]!r}; upgrade maxmargin")
    return vars(import_module(KINDS[name].module))[name]


def _make(kind: str, arguments: dict[str, object]) -> object:
    """A cost, a solver, a formulation or a model."""
    cls, given = _known(kind, "component"), _renamed(kind, arguments)
    _check_parameters(cls, given)
    return cls(**given)


def _renamed(kind: str, parameters: Mapping[str, object]) -> dict[str, object]:
    """Parameters under their names of today; see ``RENAMED``."""
    names = {name: RENAMED.get(kind, {}).get(name, name) for name in parameters}
    found = {new: parameters[name] for name, new in names.items() if new is not None}
    ramp = {name.removeprefix("loss__"): found.pop(name) for name in [*found] if name.startswith("loss__")}
    if ramp and found.get("loss") == "ramp":
        from maxmargin.formulations.ramp import Ramp

        found["loss"] = Ramp().set_params(**ramp)
    return found


def _check_parameters(cls: type, parameters: Mapping[str, object]) -> None:
    """Known names, and values of the kinds that the constructor declares; ranges are checked where they matter."""
    declared = {field.name: field.type for field in fields(cls)} if is_dataclass(cls) else {}
    hints = get_type_hints(cls)
    for name, value in parameters.items():
        if name not in declared:
            raise ValueError(f"{cls.__name__} has no parameter {name[:80]!r}; a newer version may have it")
        if not is_of_kind(value, hints[name]):
            wanted = {"int": "a whole number", "float": "a number"}.get(str(declared[name]), declared[name])
            raise ValueError(f"its parameter {name!r} must be {wanted}, got {str(value)[:40]!r}")


def _parameters(estimator: Saveable) -> dict[str, object]:
    """Constructor arguments."""
    from maxmargin.estimators.typed_sklearn import BaseEstimator

    assert isinstance(estimator, BaseEstimator)
    return estimator.get_params(deep=False)


def _storable_parameters(estimator: Saveable, fitted: Fitted) -> dict[str, object]:
    """Constructor arguments that a file can hold; a warning names those that it cannot."""
    from maxmargin.estimators.base import Structured
    from maxmargin.formulations.ramp import Ramp
    from maxmargin.solvers.column_generation import ColumnGeneration

    found: dict[str, object] = {}
    for name, value in _parameters(estimator).items():
        stored = {"features": fitted.features, "estimator": fitted.inside}.get(name)  # elsewhere, as it is after fit
        if name == "callbacks" or stored is not None or (name == "start" and isinstance(value, Structured)):
            continue
        if isinstance(value, Ramp) and isinstance(value.start, Structured):  # a file cannot hold another model
            value = copy(value).set_params(start="zero")
        if isinstance(value, ColumnGeneration) and not isinstance(value.start, str):  # nor further weights
            value = copy(value).set_params(start="zero")
        value = list(value) if isinstance(value, range) else value
        if not _is_storable(value) and name in fitted.stand_ins:
            value = fitted.stand_ins[name]()
            if value is None:
                continue
        if _is_storable(value):
            found[name] = value
        else:
            loaded = f"the loaded {type(estimator).__name__} will have its default."
            warnings.warn(f"the parameter {name}={value!r} cannot be stored in a model file; {loaded}", stacklevel=4)
    return found


def _is_storable(value: object) -> bool:
    try:
        pack_value(value, {}, "value", _modules("component"))
    except ValueError:
        return False
    return True


def as_mapping(value: object, name: str) -> dict[str, object]:
    """A stored value, if it is a mapping with text keys."""
    if type(value) is not dict or not all(type(key) is str for key in value):
        raise ValueError(f"its {name} is not a mapping with text keys")
    return value


def _pack_features(features: Extractor, given: bool, tensors: dict[str, np.ndarray]) -> str:
    kind = type(features).__name__
    if _modules("features").get(kind) != type(features).__module__:
        only = f"only {', '.join(_modules('features'))} can"
        advice = "Take it off (features_ = None), and extract the features before predict."
        raise ValueError(f"the feature extractor {kind} cannot be stored in a model file, {only}. {advice}")
    return pack_value({"kind": kind, "given": given, "state": features.to_state()}, tensors, "features")


def _training_facts(fitted: Mapping[str, object]) -> dict[str, object]:
    """What a file holds about the training, from the attributes of an estimator; None for what is not there."""
    found, status, seconds = fitted.get("certificate_"), fitted.get("status_"), fitted.get("seconds_")
    facts: dict[str, object] = {"certificate": None, "status": None, "seconds": None}
    if isinstance(found, Certificate):
        bounds = {"primal": float(found.primal), "dual": float(found.dual)}
        facts["certificate"] = {**bounds, "certified": bool(found.certified)}
    if isinstance(status, Status):
        facts["status"] = {"code": status.code, "sentence": status.sentence}
    if isinstance(seconds, Mapping):
        facts["seconds"] = {name: float(value) for name, value in seconds.items()}
    for name, kind in (("n_iter", float), ("oracle_calls", int), ("temperature", float), ("label_column", int)):
        value = fitted.get(f"{name}_")
        facts[name] = kind(value) if isinstance(value, (int, float, np.number)) else None
    facts["history"] = _thinned(fitted.get("history_"))
    columns = fitted.get("columns_")
    facts["columns"] = asdict(columns) if isinstance(columns, ColumnFormat) else None
    return facts


def _thinned(given: object) -> dict[str, list[float]] | None:
    """At most HISTORY rows of a run, the first and the last among them, for reports."""
    history = cast("Table", given)
    if given is None or len(history["pass"]) == 0:
        return None
    kept = np.unique(np.linspace(0, len(history["pass"]) - 1, HISTORY).round().astype(int))
    return {name: np.asarray(history[name], np.float64)[kept].tolist() for name in CURVES}


def _history(given: object) -> dict[str, np.ndarray]:
    """The rows behind :func:`_thinned`, checked; columns, since pandas takes long to load."""
    columns = as_mapping(given, "history")
    rows = [column if isinstance(column := columns.get(name), list) else [] for name in CURVES]
    if len({len(row) for row in rows}) != 1 or not 0 < len(rows[0]) <= HISTORY:
        raise ValueError(f"its history is not {len(CURVES)} columns of at most {HISTORY} rows")
    for row in rows:
        _all_of(float, row, "columns of its history")
    return {name: np.array(row) for name, row in zip(CURVES, rows, strict=True)}


def _all_of(kind: type[V], values: Iterable[object], name: str) -> list[V]:
    checked = [value for value in values if isinstance(value, kind)]
    if len(checked) < len(list(values)):
        raise ValueError(f"the {name} are not all {'numbers' if kind is float else 'text'}")
    return checked


def _training(facts: Mapping[str, object]) -> dict[str, object]:
    """The attributes behind :func:`_training_facts`, checked; those that were None are left out."""
    found: dict[str, object] = {}
    certificate, status, seconds = (
        None if facts[name] is None else as_mapping(facts[name], name) for name in ("certificate", "status", "seconds")
    )
    if certificate is not None:
        bounds = [certificate["primal"], certificate["dual"]]
        primal, dual = _all_of(float, bounds, "primal and dual of its certificate")
        found["certificate_"] = Certificate(primal, dual, certificate["certified"] is True)
    if status is not None:
        code, sentence = _all_of(str, [status["code"], status["sentence"]], "code and sentence of its status")
        found["status_"] = Status(code, sentence)
    if seconds is not None:
        _all_of(float, [seconds["total"], *seconds.values()], "seconds")
        found["seconds_"] = seconds
    for name, kind in (("n_iter", float), ("oracle_calls", int)):
        value = facts[name]
        if value is not None and type(value) is not kind:
            raise ValueError(f"its {name} is a {type(value).__name__}")
        found[f"{name}_"] = value
    temperature, column = facts.get("temperature"), facts.get("label_column")  # the first files have neither
    if temperature is not None and not (isinstance(temperature, float) and 0 < temperature < np.inf):
        raise ValueError(f"its temperature is {temperature!r}")
    if column is not None and not (type(column) is int and column >= 0):  # only the command line knows of columns
        raise ValueError(f"its label column is {column!r}")
    found |= {"temperature_": temperature, "label_column_": column}
    if facts.get("history") is not None:  # earlier files have none
        found["history_"] = _history(facts["history"])
    if facts.get("columns") is not None:
        found["columns_"] = ColumnFormat.from_state(as_mapping(facts["columns"], "columns"))
    return {name: value for name, value in found.items() if value is not None}
