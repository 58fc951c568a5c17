"""Options that several commands share, groups of options, and configuration files."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Annotated, get_type_hints

import typer
from typer.models import OptionInfo

from maxmargin.cli.errors import fail

__all__ = ["Constraints", "Loss", "Precision", "Solver", "Weights", "grouped"]


Weights = StrEnum("Weights", ["all", "observed"])
Constraints = StrEnum("Constraints", ["bio", "iobes"])
Loss = StrEnum("Loss", ["hinge", "squared_hinge", "ramp"])
RampName = StrEnum("RampName", ["cost_diminished", "best_output", "cost_diminished_vs_best"])
Rescaling = StrEnum("Rescaling", ["margin", "slack", "sqrt_slack", "unit"])
Precision = StrEnum("Precision", ["float64", "float32"])
Solver = StrEnum("Solver", "auto simplicial sequential_dual bcfw frank_wolfe cutting_plane pegasos sgd perceptron mira")


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options: each field becomes an option, with the default that the group has."""
    parameters, groups = [], {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        group = hints[name]
        if not (isinstance(group, type) and is_dataclass(group)):
            parameters.append(parameter.replace(annotation=group))
            continue
        inner, groups[name] = get_type_hints(group, include_extras=True), group
        for key, default in vars(parameter.default).items():
            parameters.append(parameter.replace(name=key, default=default, annotation=inner[key]))

    @functools.wraps(command)
    def wrapper(**given: object) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    vars(wrapper)["__signature__"] = inspect.Signature(parameters)
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def positive(value: float | None) -> float | None:
    """Refuse a budget that is not positive."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not a positive number.")
    return value


def read_config(ctx: typer.Context, path: str | None) -> str | None:
    """Make the keys of a TOML file the defaults of the options; the command line takes precedence."""
    if path is None or ctx.resilient_parsing:
        return path
    known = {}
    for parameter in ctx.command.params:
        for name in parameter.opts:
            if name.startswith("-") and parameter.name not in ("config", "help"):
                known[name.lstrip("-").replace("-", "_")] = parameter.name
    try:
        with open(path, "rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        fail(f"{path}: {error.strerror}.")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fail(f"{path}: not TOML: {error}.")
    defaults: dict[str, str | bool] = {}
    for key, value in given.items():
        name = known.get(key.replace("-", "_"))
        if name is None:
            fail(f"{path}: {ctx.info_name} has no option {key!r}; see maxmargin {ctx.info_name} --help.")
        if not isinstance(value, (str, bool, int, float)):
            fail(f"{path}: {key} must be text, a number, true or false; got {value!r}.")
        # as text, so that the option's own checks apply
        defaults[name] = value if isinstance(value, bool) else str(value)
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    return path


def _panel(name: str) -> Callable[..., OptionInfo]:
    return functools.partial(typer.Option, rich_help_panel=name)


of_features, of_training, of_files = map(_panel, ("Features", "Model", "Files"))
of_stopping, of_output = map(_panel, ("When to stop", "What to write"))

LabelledFile = Annotated[str, typer.Argument(help="Column file with labels, or - for standard input.")]
ModelFile = Annotated[str, typer.Argument(help="Model file.")]
Folds = Annotated[int, typer.Option(min=2, help="Number of folds of the cross-validation.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_ABOUT_CONFIG = "TOML file whose keys are option names; the command line takes precedence."
Config = Annotated[str | None, of_files(help=_ABOUT_CONFIG, is_eager=True, callback=read_config, metavar="FILE")]
Separator = Annotated[str | None, of_files(help="Between columns; runs of spaces and tabs by default.", metavar="TEXT")]
Comment = Annotated[str | None, of_files(help="Skip lines that begin with this.", metavar="PREFIX")]
LabelColumn = Annotated[int, of_files(help="Column of the true labels, from 0; -1 is the last.")]
KnownLabelColumn = Annotated[
    int | None, of_files(help="Column of the true labels, from 0; -1 is the last. By default as in training.")
]

_ABOUT_TEMPLATE = "CRF++ template file. Without it: words, affixes and shapes of column 0."
Template = Annotated[str | None, of_features("--template", "-t", help=_ABOUT_TEMPLATE, metavar="FILE")]
MinCount = Annotated[int, of_features(min=1, help="Leave out features that occur on fewer tokens.")]
Hashing = Annotated[int | None, of_features(min=1, help="Hash features to this many numbers; no vocabulary, no names.")]

CostWeight = Annotated[float, of_training("-C", min=0.0, help="Weight of the losses; larger fits more closely.")]
WeightsOption = Annotated[
    Weights,
    of_training("--weights", help="A weight for all pairs of feature and label, or for those observed in training."),
]
ConstraintsOption = Annotated[Constraints | None, of_training("--constraints", help="Scheme that labels must follow.")]
Ends = Annotated[bool, of_training("--ends/--no-ends", help="Weights for the first and the last label.")]
LossOption = Annotated[Loss, of_training("--loss", help="ramp is bounded, for data with wrong labels.")]
RampOption = Annotated[RampName, of_training("--ramp", help="Which ramp, with --loss ramp.")]
_ABOUT_START = "Where --loss ramp begins: zero, hinge (a finished hinge fit), or a model file of the same features."
Start = Annotated[str, of_training(help=_ABOUT_START, metavar="zero|hinge|FILE")]
_ABOUT_RESCALING = (
    "margin: the cost is the required margin; slack: it multiplies the violation of a margin of 1; "
    "sqrt_slack: its square root does; unit: all wrong outputs need a margin of 1."
)
RescalingOption = Annotated[Rescaling, of_training("--rescaling", help=_ABOUT_RESCALING)]
SolverOption = Annotated[Solver, of_training("--solver", help="auto closes the gap fastest; the last four are online.")]
Jobs = Annotated[int | None, of_training("--n-jobs", "-j", help="Threads; -1 for all cores.")]
Seed = Annotated[int, of_training(help="Random seed.")]

MaxRounds = Annotated[int | None, of_stopping(min=1, help="Maximum number of convex fits with --loss ramp.")]
PassesPerRound = Annotated[
    float | None, of_stopping(callback=positive, help="Passes per convex fit; else the gap decides.")
]
Tol = Annotated[float, of_stopping(min=0.0, help="Relative duality gap to reach.")]
MaxPasses = Annotated[float | None, of_stopping(callback=positive, help="Maximum passes over the sentences.")]
MaxSeconds = Annotated[float | None, of_stopping(callback=positive, help="Maximum seconds.")]
