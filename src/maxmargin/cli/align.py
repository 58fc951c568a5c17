"""``maxmargin align train``, ``maxmargin align predict`` and ``maxmargin align evaluate``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import fitting, guarded, located
from maxmargin.cli.model import check_model_input
from maxmargin.cli.outputs import check_model_output, check_output, opened_output
from maxmargin.cli.progress import in_parts
from maxmargin.cli.train import Stopwatch, finish

if TYPE_CHECKING:
    from maxmargin.estimators.aligner import Aligner

__all__ = ["align"]

_ABOUT_LEFT = "Text file, one sentence a line, words between spaces (.gz and .xz too)."
_ABOUT_RIGHT = "Text file with the translations, in the same lines."
_ABOUT_LINKS = "Links of each pair in the format of Pharaoh, such as 0-0 1-2 2?1, where ? marks a possible link."
_ABOUT_OPINION = "Links of each pair by another aligner, in the same format; training learns how far to trust them."
_ABOUT_NEIGHBOURS = "Learn bonuses for links that touch; finer, and several times slower."
_ABOUT_BITEXT = "Two further text files without links, which teach which words go together: the more, the better."

align = typer.Typer(name="align", no_args_is_help=True, help="Links between the words of sentences and translations.")

Left = Annotated[str, typer.Argument(help=_ABOUT_LEFT)]
Right = Annotated[str, typer.Argument(help=_ABOUT_RIGHT)]
LinkFile = Annotated[str, typer.Argument(help=_ABOUT_LINKS)]
Opinion = Annotated[str | None, typer.Option("--opinion", help=_ABOUT_OPINION, metavar="FILE")]


@align.command(no_args_is_help=True)
@guarded
@o.grouped
def train(
    left: Left,
    right: Right,
    links: LinkFile,
    output: o.ModelOutput,
    bitext: Annotated[tuple[str, str] | None, o.of_training(help=_ABOUT_BITEXT, metavar="LEFT RIGHT")] = None,
    opinion: Opinion = None,
    C: o.CostWeight = 1.0,
    max_links: Annotated[int, o.of_training("--max-links", help="The most links of a word.", min=1)] = 2,
    missed: Annotated[float, o.of_training("--missed", help="Cost of a sure link that is missed.")] = 3.0,
    false: Annotated[float, o.of_training("--false", help="Cost of a link that is not even possible.")] = 1.0,
    neighbours: Annotated[bool, o.of_training("--neighbours", help=_ABOUT_NEIGHBOURS)] = False,
    fit: o.FitOptions = o.FitOptions(),
    precision: o.PrecisionOption = o.Precision.float64,
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """Learn to link words and write the model to a file.

    Ctrl-C ends training, and the model is written all the same.

    Examples:

      maxmargin align train few.fr few.en few.links --bitext much.fr.gz much.en.gz -o fr-en.mm
    """
    check_model_output(output, [left, right, links, *(bitext or ()), opinion, config])
    from maxmargin.datasets import read_bitext, read_links

    live, watch = sys.stderr.isatty(), Stopwatch()
    with watch("read"):
        pairs, gold = read_pairs(left, right, opinion), read_links(links)
        more = None if bitext is None else read_bitext(*bitext)
    check_lines(left, pairs, links, gold)
    from maxmargin.estimators.aligner import Aligner
    from maxmargin.features import AlignmentFeatures

    features = AlignmentFeatures(opinion=opinion is not None)
    model = Aligner(C=C, max_links=max_links, missed=missed, false=false, neighbours=neighbours)
    model.set_params(features=features, verbose=int(live))
    model.set_params(**fit.parameters())
    with watch("train"), fitting(links, lambda example, _: example + 1):
        model.fit(pairs, gold, bitext=more)
    sure = sum(len(one.sure) for one in gold)
    facts = {"examples": f"{len(pairs)} sentence pairs, {sure} sure links, {len(more or ())} pairs without links"}
    finish(model, facts, watch, output, str(precision))


@align.command(no_args_is_help=True)
@guarded
def predict(
    model: o.ModelFile,
    left: Left,
    right: Right,
    output: o.TextOutput = "-",
    opinion: Opinion = None,
    debug: o.Debug = False,
) -> None:
    """Write the links of each sentence pair in the format of Pharaoh, one line each.

    Examples:

      maxmargin align predict fr-en.mm new.fr new.en > new.links
    """
    check_output(output, [left, right, model, opinion])
    aligner = load(model)
    found = in_parts(aligner.predict, asked_pairs(aligner, model, left, right, opinion), "aligning")
    with opened_output(output) as out:
        out.writelines(" ".join(f"{i}-{j}" for i, j in links) + "\n" for links in found)


@align.command(no_args_is_help=True)
@guarded
def evaluate(
    model: o.ModelFile,
    left: Left,
    right: Right,
    links: LinkFile,
    opinion: Opinion = None,
    as_json: Annotated[bool, o.of_output("--json", help="Write one JSON object; shares are from 0 to 1.")] = False,
    debug: o.Debug = False,
) -> None:
    """Compare predicted links with gold ones.

    Precision is the share of predicted links that are possible, recall the share of sure links that are predicted, and
    the alignment error rate weighs both.

    Examples:

      maxmargin align evaluate fr-en.mm test.fr test.en test.links
    """
    aligner = load(model)
    from maxmargin.datasets import read_links
    from maxmargin.metrics import alignment_report

    pairs, gold = asked_pairs(aligner, model, left, right, opinion), read_links(links)
    check_lines(left, pairs, links, gold)
    found, shapes = in_parts(aligner.predict, pairs, "aligning"), [shape_of(pair) for pair in pairs]
    with located(links, lambda example, _: example + 1):
        report = alignment_report(gold, found, shapes=shapes)
    if as_json:
        typer.echo(json.dumps(report._asdict(), indent=2))
        return
    typer.echo(f"{len(pairs)} sentence pairs")
    for name, value in report._asdict().items():
        typer.echo(f"{name.replace('_', ' '):10}  {100 * value:6.2f}%")


def read_pairs(left: str, right: str, opinion: str | None) -> list:
    """Pairs of sentences, followed by the links of another aligner where these are given."""
    from maxmargin.datasets import read_bitext, read_links
    from maxmargin.datasets.links import as_links

    pairs = read_bitext(left, right)
    if opinion is None:
        return pairs
    links = read_links(opinion)
    check_lines(left, pairs, opinion, links)
    with located(opinion, lambda example, _: example + 1):
        checked = [as_links(given, i, shape_of(pair)) for i, (given, pair) in enumerate(zip(links, pairs, strict=True))]
    return [(*pair, given) for pair, given in zip(pairs, checked, strict=True)]


def shape_of(pair: Sequence[Sized]) -> tuple[int, int]:
    """How many words the sentences of a pair have."""
    return len(pair[0]), len(pair[1])


def asked_pairs(aligner: Aligner, model: str, left: str, right: str, opinion: str | None) -> list:
    """Pairs of sentences for a trained aligner, which has learned to ask another one or has not."""
    asks = aligner.features_ is not None and aligner.features_.opinion
    if asks and opinion is None:
        raise ValueError(f"{model} was trained with --opinion; give --opinion FILE, the links of the other aligner.")
    if opinion is not None and not asks:
        raise ValueError(f"{model} was trained without --opinion; leave it out, or train with --opinion FILE.")
    return read_pairs(left, right, opinion)


def check_lines(left: str, pairs: Sized, links: str, gold: Sized) -> None:
    """Refuse links of more or fewer pairs."""
    if len(pairs) != len(gold):
        counts = f"{left} has {len(pairs)} lines and {links} has {len(gold)}"
        raise ValueError(f"{counts}; give the links of each sentence pair in its line.")


def load(path: str) -> Aligner:
    """The aligner of a model file."""
    check_model_input(path)
    from maxmargin.estimators.aligner import Aligner

    return Aligner.load(path)
