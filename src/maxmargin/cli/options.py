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

from maxmargin.cli.errors import fail

__all__ = ["Constraints", "Loss", "Precision", "Solver", "Weights", "grouped"]


Weights = StrEnum("Weights", ["all", "observed"])
Constraints = StrEnum("Constraints", ["bio", "iobes"])
Loss = StrEnum("Loss", ["hinge", "squared_hinge", "ramp"])
RampName = StrEnum("RampName", ["cost_diminished", "best_output", "cost_diminished_vs_best"])
Rescaling = StrEnum("Rescaling", ["margin", "slack", "sqrt_slack", "unit"])
Precision = StrEnum("Precision", ["float64", "float32"])
Solver = StrEnum(
    "Solver",
    [
        "auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane", "pegasos", "sgd", "perceptron",
        "mira",
    ],
)  # fmt: skip


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
        parameters += [
            parameter.replace(name=key, default=default, annotation=inner[key])
            for key, default in vars(parameter.default).items()
        ]

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


FEATURES, TRAINING, FORMAT, STOPPING = "Features", "Model", "Files", "When to stop"

Config = Annotated[
    str | None,
    typer.Option(
        help="TOML file whose keys are option names; the command line takes precedence.",
        is_eager=True,
        callback=read_config,
        metavar="FILE",
        rich_help_panel=FORMAT,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(help="Between columns; runs of spaces and tabs by default.", rich_help_panel=FORMAT, metavar="TEXT"),
]
Comment = Annotated[
    str | None, typer.Option(help="Skip lines that begin with this.", rich_help_panel=FORMAT, metavar="PREFIX")
]
LabelColumn = Annotated[
    int, typer.Option(help="Column of the true labels, from 0; -1 is the last.", rich_help_panel=FORMAT)
]
KnownLabelColumn = Annotated[
    int | None,
    typer.Option(
        help="Column of the true labels, from 0; -1 is the last. By default as in training.",
        rich_help_panel=FORMAT,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

Template = Annotated[
    str | None,
    typer.Option(
        "--template",
        "-t",
        help="CRF++ template file. Without it: words, affixes and shapes of column 0.",
        rich_help_panel=FEATURES,
        metavar="FILE",
    ),
]
MinCount = Annotated[
    int, typer.Option(min=1, help="Leave out features that occur on fewer tokens.", rich_help_panel=FEATURES)
]
Hashing = Annotated[
    int | None,
    typer.Option(min=1, help="Hash features to this many numbers; no vocabulary, no names.", rich_help_panel=FEATURES),
]
CostWeight = Annotated[
    float,
    typer.Option("-C", min=0.0, help="Weight of the losses; larger fits more closely.", rich_help_panel=TRAINING),
]
WeightsOption = Annotated[
    Weights,
    typer.Option(
        "--weights",
        help="A weight for all pairs of feature and label, or for those observed in training.",
        rich_help_panel=TRAINING,
    ),
]
ConstraintsOption = Annotated[
    Constraints | None,
    typer.Option("--constraints", help="Scheme that labels must follow.", rich_help_panel=TRAINING),
]
Ends = Annotated[
    bool,
    typer.Option("--ends/--no-ends", help="Weights for the first and the last label.", rich_help_panel=TRAINING),
]
LossOption = Annotated[
    Loss, typer.Option("--loss", help="ramp is bounded, for data with wrong labels.", rich_help_panel=TRAINING)
]
RampOption = Annotated[RampName, typer.Option("--ramp", help="Which ramp, with --loss ramp.", rich_help_panel=TRAINING)]
Start = Annotated[
    str,
    typer.Option(
        help="Where --loss ramp begins: zero, hinge (a finished hinge fit), or a model file of the same features.",
        rich_help_panel=TRAINING,
        metavar="zero|hinge|FILE",
    ),
]
MaxRounds = Annotated[
    int | None, typer.Option(min=1, help="Maximum number of convex fits with --loss ramp.", rich_help_panel=STOPPING)
]
PassesPerRound = Annotated[
    float | None,
    typer.Option(callback=positive, help="Passes per convex fit; else the gap decides.", rich_help_panel=STOPPING),
]
RescalingOption = Annotated[
    Rescaling,
    typer.Option(
        "--rescaling",
        help="margin: the cost is the required margin; slack: it multiplies the violation of a margin of 1; "
        "sqrt_slack: its square root does; unit: all wrong outputs need a margin of 1.",
        rich_help_panel=TRAINING,
    ),
]
SolverOption = Annotated[
    Solver,
    typer.Option("--solver", help="auto closes the gap fastest; the last four are online.", rich_help_panel=TRAINING),
]
Tol = Annotated[float, typer.Option(min=0.0, help="Relative duality gap to reach.", rich_help_panel=STOPPING)]
MaxPasses = Annotated[
    float | None,
    typer.Option(callback=positive, help="Maximum passes over the sentences.", rich_help_panel=STOPPING),
]
MaxSeconds = Annotated[float | None, typer.Option(callback=positive, help="Maximum seconds.", rich_help_panel=STOPPING)]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", "-j", help="Threads; -1 for all cores.", rich_help_panel=TRAINING)
]
Seed = Annotated[int, typer.Option(help="Random seed.", rich_help_panel=TRAINING)]
