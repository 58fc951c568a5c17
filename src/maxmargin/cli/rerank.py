"""``maxmargin rerank train``, ``maxmargin rerank predict`` and ``maxmargin rerank evaluate``."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import fitting, guarded
from maxmargin.cli.model import check_model_input
from maxmargin.cli.outputs import check_model_output, check_output, opened_output
from maxmargin.cli.progress import in_parts
from maxmargin.cli.train import Stopwatch, finish
from maxmargin.features.column_files import located

if TYPE_CHECKING:
    from maxmargin.datasets import NBestLists
    from maxmargin.estimators.lattice_ranker import LatticeRanker

__all__ = ["rerank"]

_ABOUT_LISTS = "n-best lists as Moses writes them, id ||| hypothesis ||| features ||| score (.gz and .xz too)."
_ABOUT_REFERENCES = (
    "Text files with the reference of list 0 in the first line, of list 1 in the second, ...; several files "
)
_ABOUT_REFERENCES += "give several references. Words are compared as they are written, between spaces."
_ABOUT_N_GOOD = "So many hypotheses of a list, those of largest BLEU, are good, and must outscore the bad ones by 1."
_ABOUT_PAIRING = "With --n-good: each good hypothesis must outscore all bad ones (the default), or those nearest to it."

Pairing = StrEnum("Pairing", ["all", "nearest"])

rerank = typer.Typer(name="rerank", no_args_is_help=True, help="The best hypothesis of each n-best list.")

Lists = Annotated[str, typer.Argument(help=_ABOUT_LISTS, metavar="NBEST")]
References = Annotated[list[str], typer.Argument(help=_ABOUT_REFERENCES, metavar="REFERENCE...")]


@rerank.command(no_args_is_help=True)
@guarded
@o.grouped
def train(
    lists: Lists,
    references: References,
    output: o.ModelOutput,
    C: o.CostWeight = 1.0,
    n_good: Annotated[int | None, o.of_training("--n-good", help=_ABOUT_N_GOOD, min=1)] = None,
    pairing: Annotated[Pairing | None, o.of_training("--pairing", help=_ABOUT_PAIRING)] = None,
    penalty: o.PenaltyOption = o.Penalty.l2,
    rescaling: o.RescalingOption = None,
    fit: o.FitOptions = o.FitOptions(),
    precision: o.PrecisionOption = o.Precision.float64,
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """Learn to choose among hypotheses and write the model to a file.

    Ctrl-C ends training, and the model is written all the same.

    Examples:

      maxmargin rerank train tune.nbest.gz tune.en -o rerank.mm
    """
    check_model_output(output, [lists, *references, config])
    live, watch = sys.stderr.isatty(), Stopwatch()
    with watch("read"):
        found = read_lists(lists)
        targets = read_references(lists, found.ids, references)
    if pairing is not None and n_good is None:
        raise ValueError("--pairing is for several good hypotheses; say with --n-good how many of a list are good.")
    from maxmargin.estimators.lattice_ranker import LatticeRanker

    how = {"penalty": str(penalty), "rescaling": None if rescaling is None else str(rescaling)}
    model = LatticeRanker(C=C, n_good=n_good, verbose=int(live))
    model.set_params(**how, **fit.parameters())
    with watch("train"), fitting(lists, lambda example, _: found.lines[example]):
        model.fit(found.lattices, targets, pairing=str(pairing or Pairing.all))
    count = sum(len(lattice) for lattice in found.lattices)
    facts = {"examples": f"{len(found.ids)} lists, {count} hypotheses, {len(model.coef_)} features"}
    finish(model, facts, watch, output, str(precision))


@rerank.command(no_args_is_help=True)
@guarded
def predict(
    model: o.ModelFile,
    lists: Lists,
    k: Annotated[int, typer.Option("--k", help="Write so many distinct hypotheses, with their scores.", min=1)] = 1,
    output: o.TextOutput = "-",
    debug: o.Debug = False,
) -> None:
    """Write the best hypothesis of each list, one per line; with --k several as id ||| hypothesis ||| score.

    Examples:

      maxmargin rerank predict rerank.mm test.nbest.gz > test.out
    """
    check_output(output, [lists, model])
    ranker, found = load(model), read_lists(lists)
    with located(lists, lambda example, _: found.lines[example]):
        if k == 1:  # of equals the one that evaluate chooses
            lines = in_parts(ranker.predict, found.lattices, "ranking")
        else:
            ranked = in_parts(lambda part: ranker.predict_kbest(part, k), found.lattices, "ranking")
            rows = zip(found.ids, ranked, strict=True)
            lines = [f"{key} ||| {text} ||| {score:.6g}" for key, outputs in rows for text, score in outputs]
    with opened_output(output) as out:
        out.writelines(f"{line}\n" for line in lines)


@rerank.command(no_args_is_help=True)
@guarded
def evaluate(
    model: o.ModelFile,
    lists: Lists,
    references: References,
    as_json: Annotated[bool, o.of_output("--json", help="Write one JSON object.")] = False,
    debug: o.Debug = False,
) -> None:
    """BLEU of the chosen hypotheses, of those with the largest score in the file, and of the best ones there are.

    Examples:

      maxmargin rerank evaluate rerank.mm test.nbest.gz test.en
    """
    ranker, found = load(model), read_lists(lists)
    targets = read_references(lists, found.ids, references)
    from maxmargin.metrics import bleu, sentence_bleu

    with located(lists, lambda example, _: found.lines[example]):
        ours = in_parts(ranker.predict, found.lattices, "ranking")
    split = [[reference.split() for reference in target] for target in targets]
    oracle = [
        max(lattice.words, key=lambda text, truth=truth: sentence_bleu(text.split(), truth))  # type: ignore[misc]
        for lattice, truth in zip(found.lattices, split, strict=True)
    ]
    first = [lattice.words[int(s.argmax())] for lattice, s in zip(found.lattices, found.scores, strict=True)]
    chosen = {"reranked": list(ours), "score in the file": first, "oracle": oracle}
    report = {name: bleu([text.split() for text in texts], split).score for name, texts in chosen.items()}
    if as_json:
        typer.echo(json.dumps({name.replace(" ", "_"): value for name, value in report.items()}, indent=2))
        return
    typer.echo(f"{len(found.ids)} lists")
    for name, value in report.items():
        typer.echo(f"{name:18} BLEU {value:6.2f}")


def read_lists(path: str) -> NBestLists:
    from maxmargin.datasets import read_nbest

    return read_nbest(path)


def read_references(lists: str, ids: list[int], paths: list[str]) -> list[list[str]]:
    """The references of each list: line i of each file belongs to list i."""
    from maxmargin.datasets.text_lines import decoded, opened

    columns = []
    for path in paths:
        with opened(path) as (lines, name):
            columns.append([line.strip() for _, line in decoded(lines, name)])
        if max(ids) >= len(columns[-1]):
            what = f"{path} has {len(columns[-1])} lines and {lists} the list {max(ids)}"
            raise ValueError(f"{what}; the reference of list 0 stands in the first line, and so on.")
    return [[column[key] for column in columns] for key in ids]


def load(path: str) -> LatticeRanker:
    """The ranker of a model file."""
    check_model_input(path)
    from maxmargin.estimators.lattice_ranker import LatticeRanker

    return LatticeRanker.load(path)
