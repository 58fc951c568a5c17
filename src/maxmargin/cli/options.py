"""Options that several commands share, groups of options, and configuration files."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, get_type_hints

import typer
from typer.models import OptionInfo

from maxmargin.cli.errors import fail

__all__ = ["Constraints", "Executor", "FitOptions", "Format", "Loss", "Precision", "Solver", "Weights", "grouped"]

Weights = StrEnum("Weights", ["all", "observed"])
Constraints = StrEnum("Constraints", ["bio", "iobes"])
Loss = StrEnum("Loss", ["hinge", "squared_hinge", "ramp"])
RampName = StrEnum("RampName", ["cost_diminished", "best_output", "cost_diminished_vs_best"])
Rescaling = StrEnum("Rescaling", ["margin", "slack", "sqrt_slack", "unit"])
SlackSearch = StrEnum(
    "SlackSearch", ["auto", "angular", "bisecting", "binary", "golden", "sarawagi_gupta", "relaxed"]
)  # fmt: skip
Penalty = StrEnum("Penalty", ["l2", "l1"])
Format = StrEnum("Format", ["auto", "columns", "conllu"])
Precision = StrEnum("Precision", ["float64", "float32"])
Executor = StrEnum("Executor", ["auto", "serial", "threads", "processes", "ray"])
Solver = StrEnum(
    "Solver",
    "auto simplicial sequential_dual bcfw frank_wolfe cutting_plane pegasos sgd perceptron mira column_generation "
    "recentred_dual sharded",
)


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


def not_empty(value: str | None) -> str | None:
    """Refuse a mark without characters."""
    if value == "":
        raise typer.BadParameter("it must not be empty; leave the option out.")
    return value


def column(value: str | None) -> str | None:
    """Refuse a column that is neither a number nor the name of a field of CoNLL-U."""
    from maxmargin.datasets.column_format import FIELDS

    if value is None or value.lower() in FIELDS or value.removeprefix("-").isdecimal():
        return value
    raise typer.BadParameter(f"{value!r} is neither a number nor a field of CoNLL-U ({', '.join(FIELDS)}).")


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
_ABOUT_FILES = "Column files with labels, or - for standard input. Several are read by several processes (--n-jobs)."
LabelledFiles = Annotated[list[str], typer.Argument(help=_ABOUT_FILES, metavar="FILE...")]
ModelFile = Annotated[str, typer.Argument(help="Model file.")]
ModelOutput = Annotated[str, typer.Option("--output", "-o", help="Model file to write.", metavar="FILE")]
TextOutput = Annotated[str, typer.Option("--output", "-o", help="Where to write; - is standard output.")]
Folds = Annotated[int, typer.Option(min=2, help="Number of folds of the cross-validation.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_ABOUT_CONFIG = "TOML file whose keys are option names; the command line takes precedence."
Config = Annotated[str | None, of_files(help=_ABOUT_CONFIG, is_eager=True, callback=read_config, metavar="FILE")]
_ABOUT_FORMAT = (
    "columns (divided by spaces or tabs) or conllu (CoNLL-U). auto recognises CoNLL-U in training, and reads other "
    "files as the model was trained."
)
FormatOption = Annotated[Format, of_files("--format", help=_ABOUT_FORMAT)]
_ABOUT_SEPARATOR = "What divides the columns; by default any spaces and tabs, or as in training."
Separator = Annotated[str | None, of_files(callback=not_empty, help=_ABOUT_SEPARATOR, metavar="TEXT")]
_ABOUT_COMMENT = "Skip lines that begin with this; by default as in training."
Comment = Annotated[str | None, of_files(callback=not_empty, help=_ABOUT_COMMENT, metavar="PREFIX")]
_ABOUT_PRECISION = "Precision of the stored weights; float32 halves the file."
PrecisionOption = Annotated[Precision, of_files("--precision", help=_ABOUT_PRECISION)]
_ABOUT_UNPACKED = "Megabytes at which archives are refused that unpack to over 30 times their size."
MaxUnpacked = Annotated[float, of_files(callback=positive, help=_ABOUT_UNPACKED)]


_ABOUT_MAP = (
    "Folder to pack the files into; training maps the pack instead of keeping it in memory, and finds it there the "
    "next time, unless a file has changed."
)
MemoryMap = Annotated[str | None, of_files(help=_ABOUT_MAP, metavar="FOLDER")]


def column_option(about: str) -> OptionInfo:
    """An option that names a column."""
    how = "A number from 0 (-1 is the last), or a field of CoNLL-U."
    return of_files(help=f"{about}. {how}", callback=column, metavar="COLUMN")


WordColumn = Annotated[str | None, column_option("Column of the words; by default the first, or form in CoNLL-U")]
LabelColumn = Annotated[str | None, column_option("Column of the labels; by default the last, or upos in CoNLL-U")]
KnownLabelColumn = Annotated[str | None, column_option("Column of the true labels; by default as in training")]

_ABOUT_TEMPLATE = "CRF++ template file. Without it: words, affixes and shapes of --word-column."
Template = Annotated[str | None, of_features("--template", "-t", help=_ABOUT_TEMPLATE, metavar="FILE")]
MinCount = Annotated[int, of_features(min=1, help="Leave out features that occur on fewer tokens.")]
_ABOUT_HASHING = "Hash features to this many columns, without a vocabulary and without names."
Hashing = Annotated[int | None, of_features(min=1, help=_ABOUT_HASHING)]

_ABOUT_C = "Weight of the training losses; larger values fit the training data more closely."
CostWeight = Annotated[float, of_training("-C", min=0.0, help=_ABOUT_C)]
_ABOUT_WEIGHTS = "Give a weight to all pairs of feature and label, or only to those observed in training."
WeightsOption = Annotated[Weights, of_training("--weights", help=_ABOUT_WEIGHTS)]
_ABOUT_CONSTRAINTS = "Tagging scheme that the labels must follow."
ConstraintsOption = Annotated[Constraints | None, of_training("--constraints", help=_ABOUT_CONSTRAINTS)]
Ends = Annotated[bool, of_training("--ends/--no-ends", help="Weights for the first and last label of a sentence.")]
LossOption = Annotated[Loss, of_training("--loss", help="Loss; ramp is bounded, for data with wrong labels.")]
RampOption = Annotated[RampName, of_training("--ramp", help="Which ramp, with --loss ramp.")]
_ABOUT_START = "Where --loss ramp begins: zero, hinge (a finished hinge fit), or a model file of the same features."
Start = Annotated[str, of_training(help=_ABOUT_START, metavar="zero|hinge|FILE")]
_ABOUT_RESCALING = (
    "margin: the cost is the required margin; slack: it multiplies the violation of a margin of 1; "
    "sqrt_slack: its square root does; unit: all wrong outputs need a margin of 1 (the default with --penalty l1)."
)
_ABOUT_SEARCH = (
    "How slack rescaling finds the most violating output: auto, one of the searches of Choi, Meshi, Srebro 2016, or "
    "relaxed (fractional outputs, a certified upper bound)."
)
SearchOption = Annotated[SlackSearch, of_training("--slack-search", help=_ABOUT_SEARCH)]
RescalingOption = Annotated[Rescaling | None, of_training("--rescaling", help=_ABOUT_RESCALING)]
_ABOUT_PENALTY = "What keeps the weights small: half their squares, or their absolute values (l1: most weights are 0)."
PenaltyOption = Annotated[Penalty, of_training("--penalty", help=_ABOUT_PENALTY)]
_ABOUT_SOLVER = (
    "Training method; auto closes the gap fastest on one core, sharded on several (with --n-jobs). pegasos, sgd, "
    "perceptron and mira are online methods; column_generation and recentred_dual are for --penalty l1."
)
SolverOption = Annotated[Solver, of_training("--solver", help=_ABOUT_SOLVER)]
_ABOUT_JOBS = "Number of workers; -1 for all cores."
Jobs = Annotated[int | None, of_training("--n-jobs", "-j", help=_ABOUT_JOBS)]
_ABOUT_FIT_JOBS = (
    f"{_ABOUT_JOBS} --solver auto asks its oracle on several but does the rest of the fit on one; --solver sharded "
    "uses them for the whole fit."
)
FitJobs = Annotated[int | None, of_training("--n-jobs", "-j", help=_ABOUT_FIT_JOBS)]
_ABOUT_EXECUTOR = "What workers are; auto: threads, and processes for files. ray: actors of a local Ray cluster."
ExecutorOption = Annotated[Executor, of_training("--executor", help=_ABOUT_EXECUTOR)]
Seed = Annotated[int, of_training(help="Random seed.")]

MaxRounds = Annotated[int | None, of_stopping(min=1, help="Maximum number of convex fits with --loss ramp.")]
_ABOUT_ROUNDS = "Passes of each convex fit with --loss ramp; by default its gap decides."
PassesPerRound = Annotated[float | None, of_stopping(callback=positive, help=_ABOUT_ROUNDS)]
Tol = Annotated[float, of_stopping(min=0.0, help="Stop when the relative duality gap is this small.")]
MaxPasses = Annotated[float | None, of_stopping(callback=positive, help="Stop after so many passes over the data.")]
MaxSeconds = Annotated[float | None, of_stopping(callback=positive, help="Stop after so many seconds.")]


@dataclass(frozen=True)
class FitOptions:
    """The options of every command that trains."""

    loss: LossOption = Loss.hinge
    solver: SolverOption = Solver.auto
    tol: Tol = 1e-3
    max_passes: MaxPasses = 1000
    max_seconds: MaxSeconds = None
    n_jobs: FitJobs = None
    executor: ExecutorOption = Executor.auto
    seed: Seed = 0

    def parameters(self) -> dict[str, object]:
        """As the constructor of an estimator takes them, with those that a subclass adds."""
        given = {name: str(value) if isinstance(value, str) else value for name, value in vars(self).items()}
        return {"random_state": given.pop("seed"), **given}
