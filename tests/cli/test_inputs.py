"""Files that nobody has checked: a line on standard error names the file, the line and what to do."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import maxmargin as mm
from cli.corpus import sentences, text
from cli.test_errors import PROGRAM

GOOD = "Ann N B-PER\nran V O\n\n"


# --- traps ----------------------------------------------------------------------------------------------------------


def bomb(path, unit, n_bytes):
    """An archive of a repeated unit."""
    opener = gzip.open if path.suffix == ".gz" else lzma.open
    piece = unit * (2**20 // len(unit))
    with opener(path, "wb", **({"compresslevel": 6} if path.suffix == ".gz" else {"preset": 0})) as file:
        for _ in range(n_bytes // len(piece)):
            file.write(piece)
    return path


def bounded(*arguments):
    """A process with a gigabyte of memory."""
    limit = 10**9

    def held():
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    return subprocess.run(
        [*PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, preexec_fn=held, timeout=120
    )


@pytest.fixture(scope="module")
def traps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traps")
    return {
        "tokens": bomb(folder / "tokens.gz", b"a N O\n", 2 * 2**20),
        "endless line": bomb(folder / "line.gz", b"a" * 64, 2 * 2**20),
        "blank lines": bomb(folder / "blank.xz", b"\n", 2 * 2**20),
    }


@pytest.mark.found("D: gzip bomb")
@pytest.mark.parametrize("command", ["train", "predict"])
def test_archives_that_unpack_to_too_much_are_refused(files, tmp_path, traps, command):
    out = tmp_path / "out"
    for kind, path in traps.items():
        model = [files.model] if command == "predict" else []
        done = bounded(command, *model, path, "-o", out, "--max-unpacked", 1.5)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (kind, done.stderr[-500:])
        assert path.name in done.stderr and not list(tmp_path.iterdir())
        if kind == "endless line" and command == "predict":
            assert "line 1: more than 1000000 bytes" in done.stderr
        else:
            assert "unpacks to over 30 times its size" in done.stderr, done.stderr


@pytest.mark.found("D: gzip bomb")
def test_a_trap_of_any_size_ends_at_the_limit(files, tmp_path):
    """16 GB in 16 MB: what counts is how much of the archive was read, not how large it is."""
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"a N O\n\n" * 2**21, 9) * 1100)
    for command, model in (("train", []), ("evaluate", [files.model])):
        done = bounded(command, *model, path, *(["-o", tmp_path / "out"] if command == "train" else []))
        assert done.returncode == 1 and "unpacks to over 30 times its size, 6" in done.stderr, done.stderr[-500:]


@pytest.mark.found("D: gzip bomb")
def test_the_limit_can_be_raised_and_does_not_concern_plain_text(files, run, tmp_path):
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress(b"Ann N B-PER\n\n" * 10_000))
    refused = run("evaluate", files.model, packed, "--max-unpacked", 0.1)
    assert refused.exit_code == 1 and "--max-unpacked" in refused.stderr
    assert run("evaluate", files.model, packed, "--max-unpacked", 0.2).exit_code == 0
    (tmp_path / "plain.txt").write_bytes(gzip.decompress(packed.read_bytes()))
    assert run("evaluate", files.model, tmp_path / "plain.txt", "--max-unpacked", 0.1).exit_code == 0
    assert run("evaluate", files.model, packed, "--max-unpacked", 0).exit_code == 2


# --- bytes that are no text -----------------------------------------------------------------------------------------


@pytest.mark.found("D: NUL bytes, UTF-16, giant lines")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GOOD.encode() + b"a\0b N O\n", "f.txt, line 4: a NUL byte"),
        (GOOD.encode("utf-16"), "f.txt, line 1: this is UTF-16; convert it with: iconv -f UTF-16 -t UTF-8"),
        (GOOD.encode("utf-16-be"), "f.txt, line 1: a NUL byte"),
        (gzip.compress(GOOD.encode()), "f.txt, line 1: this is a gzip archive; give it a name that ends in .gz"),
        (lzma.compress(GOOD.encode()), "f.txt, line 1: this is an xz archive"),
        (GOOD.encode() + "Zürich N O\n".encode("latin-1"), "f.txt, line 4: not UTF-8 text"),
        (GOOD.encode() + b"a" * 1_000_001 + b" N O\n", "f.txt, line 4: more than 1000000 bytes"),
        (GOOD.encode() + b"b N\n", "f.txt, line 4 (sentence 1): 2 columns, but line 1 has 3"),
    ],
    ids=["NUL", "UTF-16", "UTF-16 without a mark", "gzip", "xz", "Latin 1", "giant line", "mixed columns"],
)
@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
@pytest.mark.parametrize("more", [[], ["--separator", " "]], ids=["spaces", "separator"])
def test_what_is_no_text_is_named_by_its_line(files, run, tmp_path, data, message, command, more):
    (tmp_path / "f.txt").write_bytes(data)
    model = [] if command == "train" else [files.model]
    output = [] if command == "evaluate" else ["-o", tmp_path / "out"]
    done = run(command, *model, tmp_path / "f.txt", *output, *more)
    assert done.exit_code == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr[-300:]
    assert not (tmp_path / "out").exists()


@pytest.mark.found("D: NUL bytes, UTF-16, giant lines")
def test_a_mark_in_front_and_a_missing_line_end_are_no_trouble(files, run, tmp_path):
    (tmp_path / "f.txt").write_bytes(b"\xef\xbb\xbf" + GOOD.strip().encode())
    assert run("predict", files.model, tmp_path / "f.txt").stdout == "Ann N B-PER B-PER\nran V O O\n"
    assert "100.00%" in run("evaluate", files.model, tmp_path / "f.txt").stdout


def test_a_pipe_with_a_name_is_read_once(files, run, tmp_path):
    for command in (["train"], ["predict", files.model]):
        pipe = tmp_path / f"pipe-{command[0]}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(text(sentences(5)),))
        writer.start()
        done = run(*command, pipe, "-o", tmp_path / f"out-{command[0]}")
        writer.join()
        assert done.exit_code == 0, done.output


# --- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.found("D: a whole sentence on one line")
def test_a_sentence_on_a_line_is_warned_of(files, run, tmp_path):
    done = run("predict", files.model, input="The cat saw the dog .\n")
    assert done.exit_code == 0 and len(done.stderr.splitlines()) == 1
    assert "have 6 columns, those of the training had 3" in done.stderr and "one token per line" in done.stderr
    (tmp_path / "s.txt").write_text("Ann saw Rome\n\nBob saw Paris\n\n")
    trained = run("train", tmp_path / "s.txt", "-o", tmp_path / "m.mm")
    assert "each of the 2 sentences" in trained.stderr and "not a whole sentence" in trained.stderr
    (tmp_path / "one.txt").write_text("a N O\n" * 1500)
    long = run("train", tmp_path / "one.txt", "-t", files.template, "-o", tmp_path / "m.mm")
    assert "one sentence of 1500 tokens" in long.stderr and "blank line after each sentence" in long.stderr
    python = tmp_path / "python.mm"
    mm.SequenceTagger().fit([["Ann", "ran"]], [["N", "V"]]).save(python)
    assert "one token per line" in run("predict", python, input="The cat saw the dog .\n").stderr
    assert run("predict", python, input="Ann x\nran y\n").stderr == ""


# --- what the model remembers ---------------------------------------------------------------------------------------


@pytest.mark.found("D: --comment and --separator are not remembered")
def test_comments_and_separators_are_remembered(files, run, tmp_path):
    made = text(sentences(30), joint="|").replace("\n\n", "\n%% next\n\n")
    (tmp_path / "t.txt").write_text(made)
    marks = ["--separator", "|", "--comment", "%%"]
    model = tmp_path / "m.mm"
    done = run("train", tmp_path / "t.txt", "-t", files.template, "-o", model, *marks)
    assert done.exit_code == 0, done.output
    given = "%% one\nAnn|N\n%% two\nSmith|N\n"
    said = run("predict", model, input=given)
    assert said.stdout == "%% one\nAnn|N|B-PER\n%% two\nSmith|N|I-PER\n" and said.stderr == ""
    assert (
        run("evaluate", model, tmp_path / "t.txt").stdout == run("evaluate", model, tmp_path / "t.txt", *marks).stdout
    )
    assert "separator '|', comment '%%'" in run("inspect", model).stdout
    assert run("inspect", model, "--explain", "-", input=given).exit_code == 0
    assert (
        run("predict", model, "--separator", ",", "--comment", "##", input="##\nAnn,N\n").stdout == "##\nAnn,N,B-PER\n"
    )
    tuned = run("tune", tmp_path / "t.txt", "-t", files.template, "--steps", 1, "--folds", 2, "-o", model, *marks)
    assert tuned.exit_code == 0 and run("predict", model, input=given).stdout == said.stdout


@pytest.mark.found("D: --comment and --separator are not remembered")
def test_what_is_remembered_survives_python(files, tmp_path):
    tagger = mm.load(files.model)
    tagger.save(tmp_path / "again.mm")
    assert mm.load(tmp_path / "again.mm").columns_ == tagger.columns_
    words = [[row[:2] for row in s] for s in files.test_sentences]
    assert not hasattr(tagger.fit(words, [[row[2] for row in s] for s in files.test_sentences]), "columns_")


# --- models of other kinds ------------------------------------------------------------------------------------------


@pytest.mark.found("D: predict on a graph's file")
@pytest.mark.parametrize("command", ["predict", "evaluate", "inspect"])
def test_the_message_says_what_a_file_holds_and_what_to_do(files, run, tmp_path, command):
    graph, edges = tmp_path / "graph.mm", np.array([[0, 1]])
    mm.GraphLabeler(tol=0.9).fit([{"node": np.eye(2), "edges": edges}], [["a", "b"]]).save(graph)
    image, segmenter = np.zeros((4, 4, 3), np.uint8), tmp_path / "segmenter.mm"
    image[:, 2:] = 255
    mm.ImageSegmenter(tol=0.9).fit([image], [(image[..., 0] > 0).astype(np.uint8)]).save(segmenter)
    more = [] if command == "inspect" else [files.test]
    for model, words in (
        (graph, ["holds a GraphLabeler, not a tagger", "maxmargin.load("]),
        (segmenter, ["holds a segmenter of images", "maxmargin segment predict"]),
    ):
        done = run(command, model, *more)
        assert done.exit_code == 1 and len(done.stderr.splitlines()) == 1, done.output
        assert all(word in done.stderr for word in [model.name, *words]), done.stderr


# --- loading --------------------------------------------------------------------------------------------------------


@pytest.mark.found("D: loading a model costs 2 s")
def test_a_model_loads_in_no_time(files, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    program = (
        "import sys, time\nfrom maxmargin.cli.main import app\nbegin = time.process_time()\n"
        f"try: app(['predict', {str(files.model)!r}, {str(tmp_path / 'empty.txt')!r}])\nexcept SystemExit: pass\n"
        "print(time.process_time() - begin, {'sklearn', 'numba', 'pandas', 'scipy.linalg'} & set(sys.modules))"
    )
    seconds = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        taken, loaded = done.stdout.split(" ", 1)
        seconds.append(float(taken))
        assert loaded == "set()\n", loaded
    assert min(seconds) < 0.5, seconds


def test_a_lazy_module_is_the_module():
    program = (
        "import sys\nfrom maxmargin.lazy import load_when_used\nload_when_used('scipy.sparse')\n"
        "import scipy.sparse as sp\nassert 'scipy.sparse._csr' not in sys.modules\n"
        "a = sp.csr_array([[1.0]])\nimport scipy.sparse.linalg\nfrom scipy.sparse import csr_array\n"
        "assert type(a) is csr_array is scipy.sparse.csr_array\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_in_memory_streams_have_limits_too():
    from maxmargin.datasets import iter_sentences

    for stream in (io.StringIO("a O\n" + "b" * 10**6 + " O\n"), io.BytesIO(b"a O\n" + b"b" * 10**6 + b" O\n")):
        with pytest.raises(ValueError, match="line 2: more than 1000000 bytes"):
            list(iter_sentences(stream))
