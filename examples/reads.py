"""Where in the genome does each read come from? Many data sets at once: align, sort, merge.

The application of Whitlock, Larus, Bugnion, "Extending TensorFlow's Semantics with
Pipelined Execution" (PTFbio), as one stream::

    read chunk -> align -> 10 chunks: sort, write a run -> all runs: merge, write

A request is a data set, a feed one of its chunks; several data sets are under way at once,
and none sees another. Genome and reads are drawn from a seed, so that it is known where
each read comes from: its name says so, as with wgsim. The example itself holds the output
to that. Needs the extra ``examples``. Run with, in this process or on workers of Dask::

    python examples/reads.py --output demo
    python examples/reads.py --output demo --workers 2
"""

from __future__ import annotations

import argparse
import heapq
import shutil
import statistics
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import mappy
import numpy as np
import pysam
from matplotlib.figure import Figure

import mlopt
from mlopt.cluster import local_cluster
from mlopt.events import RequestDone

BASES = np.frombuffer(b"ACGT", np.uint8)
LENGTH = 101
"""Bases of a read, as of the sequencers of the paper's data."""
WRONG = 0.01
"""Share of bases that a sequencer gets wrong."""
RUN = 10
"""Chunks that are sorted together, as in the paper."""
LEAST = 0.995
"""Share of reads that must be at their true place."""


class Row(NamedTuple):
    """A read and its place, as a BAM file has it; ``contig`` -1 where it has none."""

    contig: int
    start: int
    name: str
    flag: int
    quality: int
    cigar: str
    sequence: str
    qualities: str


class Written(NamedTuple):
    """A file, and bytes that were written to make it, its own and those before."""

    path: Path
    bytes: int


Chunk = tuple[str, list[Any]]
"""Its name, and its reads or rows."""


def draw_genome(path: Path, bases: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Two contigs, one twice as long as the other, written as FASTA."""
    contigs = [BASES[rng.integers(4, size=size)] for size in (bases // 3, 2 * bases // 3)]
    with path.open("wb") as file:
        for number, contig in enumerate(contigs):
            file.write(b">contig%d\n%s\n" % (number, contig.tobytes()))
    return contigs


def draw_reads(
    folder: Path,
    contigs: list[np.ndarray],
    reads: int,
    chunk: int,
    rng: np.random.Generator,
) -> list[Path]:
    """Reads from both strands of anywhere, with errors, in FASTQ files of ``chunk``."""
    folder.mkdir(parents=True)
    sizes = np.array([len(contig) for contig in contigs], float)
    paths = []
    for first in range(0, reads, chunk):
        paths.append(folder / f"chunk{len(paths):04d}.fastq")
        with paths[-1].open("w") as file:
            for number in range(first, min(first + chunk, reads)):
                which = int(rng.choice(len(contigs), p=sizes / sizes.sum()))
                start = int(rng.integers(len(contigs[which]) - LENGTH + 1))
                bases = contigs[which][start : start + LENGTH].copy()
                wrong = rng.random(LENGTH) < WRONG
                bases[wrong] = BASES[rng.integers(4, size=int(wrong.sum()))]
                sequence, strand = bases.tobytes().decode(), "+-"[int(rng.integers(2))]
                if strand == "-":
                    sequence = mappy.revcomp(sequence)
                name = f"{number}:{which}:{start}:{strand}"
                file.write(f"@{name}\n{sequence}\n+\n{'I' * LENGTH}\n")
    return paths


class Index:
    """The index of a genome: it does not travel, but is made once in each process."""

    def __init__(self, genome: Path) -> None:
        self.genome = genome
        self._making, self._here = threading.Lock(), threading.local()
        self._found: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Index, (self.genome,)

    @property
    def aligner(self) -> Any:
        """What finds reads."""
        with self._making:
            if self._found is None:
                self._found = mappy.Aligner(str(self.genome), preset="sr", n_threads=1)
            return self._found

    @property
    def buffer(self) -> Any:
        """What it needs in each thread."""
        if not hasattr(self._here, "buffer"):
            self._here.buffer = mappy.ThreadBuffer()
        return self._here.buffer


def in_order(contig: int, start: int, name: str) -> tuple[bool, int, int, str]:
    """What rows are sorted by: those that align nowhere come last."""
    return contig < 0, contig, start, name


def order_of(record: pysam.AlignedSegment) -> tuple[bool, int, int, str]:
    """The same of a row in a file."""
    return in_order(record.reference_id, record.reference_start, record.query_name)


def row_of(read: tuple[str, str, str], hit: Any, contig: int) -> Row:
    """A read where it was found, in the direction of the genome."""
    name, sequence, qualities = read
    clips, flag = (hit.q_st, len(sequence) - hit.q_en), 0
    if hit.strand < 0:
        clips, flag = clips[::-1], 16
        sequence, qualities = mappy.revcomp(sequence), qualities[::-1]
    before, after = (f"{clip}S" if clip else "" for clip in clips)
    cigar = before + hit.cigar_str + after
    return Row(contig, hit.r_st, name, flag, hit.mapq, cigar, sequence, qualities)


class Work(NamedTuple):
    """The stages: without state but for the files that they write.

    Parameters
    ----------
    index : Index
    folder : Path
        For what is written.
    """

    index: Index
    folder: Path

    def read(self, path: Path) -> Chunk:
        """The reads of a chunk: names, bases, qualities."""
        return f"{path.parent.name}.{path.stem}", list(mappy.fastx_read(str(path)))

    def align(self, chunk: Chunk) -> Chunk:
        """The rows of a chunk: each read at the place where it fits best."""
        aligner, buffer, rows = self.index.aligner, self.index.buffer, []
        contigs = {name: number for number, name in enumerate(aligner.seq_names)}
        for read in chunk[1]:
            hits = aligner.map(read[1], buf=buffer)
            hit = next((one for one in hits if one.is_primary), None)
            if hit is None:
                rows.append(Row(-1, -1, read[0], 4, 0, "", *read[1:]))
            else:
                rows.append(row_of(read, hit, contigs[hit.ctg]))
        return chunk[0], rows

    def sort(self, chunks: list[Chunk]) -> Written:
        """A run: the rows of some chunks, sorted."""
        rows = [row for _, rows in chunks for row in rows]
        rows.sort(key=lambda row: in_order(row.contig, row.start, row.name))
        return self._write(f"{chunks[0][0]}.run", rows)

    def merge(self, runs: list[Written]) -> Written:
        """The rows of all runs of a data set, sorted."""
        path = self.folder / f"{runs[0].path.name.partition('.')[0]}.bam"
        with ExitStack() as stack:
            files = [stack.enter_context(opened(run.path)) for run in runs]
            output = stack.enter_context(self._output(path))
            for record in heapq.merge(*files, key=order_of):
                output.write(record)
        for run in runs:
            run.path.unlink()
        return Written(path, path.stat().st_size + sum(run.bytes for run in runs))

    def store(self, chunk: Chunk) -> Written:
        """A chunk's rows in a file: what another phase reads, where it is not fused."""
        return self._write(f"{chunk[0]}.aligned", chunk[1])

    def sort_stored(self, stored: list[Written]) -> Written:
        """A run, of what `store` has written."""
        chunks = [(one.path.name.removesuffix(".aligned.bam"), rows_in(one.path))
                  for one in stored]  # fmt: skip
        run = self.sort(chunks)
        for one in stored:
            one.path.unlink()
        return Written(run.path, run.bytes + sum(one.bytes for one in stored))

    def stream(self, fused: bool = True, **given: Any) -> mlopt.Stream:
        """All stages; `mlopt.Stream` takes what is ``given``."""
        stream = mlopt.Stream(**given).map(self.read, name="read")
        stream = stream.map(self.align, name="align")
        if fused:
            stream = stream.aggregate(RUN).map(self.sort, name="sort")
        else:
            stream = stream.map(self.store, name="store")
            stream = stream.aggregate(RUN).map(self.sort_stored, name="sort")
        return stream.aggregate().map(self.merge, name="merge")

    @contextmanager
    def _output(self, path: Path) -> Iterator[pysam.AlignmentFile]:
        seq, names = self.index.aligner.seq, self.index.aligner.seq_names
        contigs = [{"SN": name, "LN": len(seq(name))} for name in names]
        header = {"HD": {"VN": "1.6"}, "SQ": contigs}
        with pysam.AlignmentFile(str(path), "wb", header=header) as file:
            yield file

    def _write(self, name: str, rows: Iterable[Row]) -> Written:
        path = self.folder / f"{name}.bam"
        with self._output(path) as file:
            for row in rows:
                record = pysam.AlignedSegment(file.header)
                record.query_name, record.flag = row.name, row.flag
                record.query_sequence = row.sequence
                record.query_qualities = pysam.qualitystring_to_array(row.qualities)
                record.reference_id, record.reference_start = row.contig, row.start
                record.mapping_quality = row.quality
                record.cigarstring = row.cigar or None
                file.write(record)
        return Written(path, path.stat().st_size)


@contextmanager
def opened(path: Path) -> Iterator[Iterator[pysam.AlignedSegment]]:
    """The rows of a file, as they come."""
    with pysam.AlignmentFile(str(path)) as file:
        yield file.fetch(until_eof=True)


def rows_in(path: Path) -> list[Row]:
    """The rows of a file."""
    with opened(path) as records:
        return [
            Row(
                one.reference_id,
                one.reference_start,
                one.query_name,
                one.flag,
                one.mapping_quality,
                one.cigarstring or "",
                one.query_sequence,
                pysam.array_to_qualitystring(one.query_qualities),
            )
            for one in records
        ]


def at_its_place(record: pysam.AlignedSegment) -> bool:
    """Whether a row is where its name says that it was drawn, to the base."""
    _, contig, start, strand = record.query_name.split(":")
    if record.is_unmapped or record.is_reverse != (strand == "-"):
        return False
    kind, length = record.cigartuples[0]
    clipped = length if kind == pysam.CSOFT_CLIP else 0
    return (record.reference_id, record.reference_start - clipped) == (
        int(contig),
        int(start),
    )


def checked(path: Path, reads: int) -> float:
    """The share of reads at their true place, of an output that is sorted and complete.

    Raises
    ------
    RuntimeError
        It is not.
    """
    with opened(path) as file:
        records = list(file)
    orders = [order_of(record) for record in records]
    if orders != sorted(orders):
        raise RuntimeError(f"{path} is not sorted.")
    numbers = sorted(int(record.query_name.partition(":")[0]) for record in records)
    if numbers != list(range(reads)):
        raise RuntimeError(f"{path} does not have each of {reads} reads once.")
    return sum(map(at_its_place, records)) / reads


def run(
    work: Work, requests: Sequence[list[Path]], reads: int, fused: bool, **given: Any
) -> tuple[float, float, float, int]:
    """Reads a second, seconds of a request from opening on, the least share of reads at
    their true place in an output, and bytes written.
    """
    done: list[RequestDone] = []

    def hear(event: Any) -> None:
        if isinstance(event, RequestDone):
            done.append(event)

    with work.stream(fused, observer=hear, **given) as stream:
        list(stream.run(requests[:2]))  # indexes are made, stages measured
        done.clear()
        began = time.perf_counter()
        outputs = [output for (output,) in stream.run(requests)]
        seconds = time.perf_counter() - began
    shares = [checked(output.path, reads) for output in outputs]
    if len({output.path for output in outputs}) != len(requests):
        raise RuntimeError("An output is missing.")
    latency = statistics.median(one.ran for one in done)
    written = sum(output.bytes for output in outputs)
    return len(requests) * reads / seconds, latency, min(shares), written


def picture(rates: Sequence[float], latencies: Sequence[float]) -> Figure:
    """Throughput and latency by how many data sets are under way."""
    figure, opened = Figure((6, 4), layout="constrained"), range(1, len(rates) + 1)
    axes = figure.subplots()
    axes.plot(opened, np.divide(rates, 1000), "o-", color="C0")
    axes.set(xlabel="data sets open at once", ylim=(0, None))
    axes.set_ylabel("thousand reads a second", color="C0")
    axes = axes.twinx()
    axes.plot(opened, latencies, "s--", color="C1")
    axes.set(ylim=(0, None))
    axes.set_ylabel("seconds of a data set", color="C1")
    figure.suptitle("Align, sort, merge: more data sets at once")
    return figure


def main(arguments: Sequence[str] | None = None) -> float:
    """Draw reads, find their places, and hold them to what is known; gives the share."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo"))
    parser.add_argument("--sets", type=int, default=12, help="data sets")
    parser.add_argument("--reads", type=int, default=4000, help="of each data set")
    parser.add_argument("--chunk", type=int, default=100, help="reads of a file")
    parser.add_argument("--bases", type=int, default=2_000_000, help="of the genome")
    parser.add_argument("--open", type=int, default=6, help="from 1 to so many at once")
    parser.add_argument("--workers", type=int, default=0, help="processes of Dask's")
    given = parser.parse_args(arguments)

    rng, folder = np.random.default_rng(0), (given.output / "reads").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "aligned").mkdir(parents=True)
    contigs = draw_genome(folder / "genome.fa", given.bases, rng)
    requests = [
        draw_reads(folder / f"set{number}", contigs, given.reads, given.chunk, rng)
        for number in range(given.sets)
    ]
    work = Work(Index(folder / "genome.fa"), folder / "aligned")
    total = given.sets * given.reads
    print(f"{total:,} reads of {given.sets} data sets, {given.bases:,} bases")

    found = []
    with local_cluster(given.workers) if given.workers else nullcontext() as client:
        for opened in range(1, given.open + 1):
            found.append(run(work, requests, given.reads, True, open=opened, client=client))
            rate, latency, share, fused = found[-1]
            print(f"{opened} open: {rate:,.0f} reads a second, {latency:.2f} s a data set")
        *_, other, apart = run(work, requests, given.reads, False, client=client)
    share = min(other, *(share for _, _, share, _ in found))
    print(f"Each output is sorted and complete; at least {share:.2%} of its reads are "
          "at their true place.")  # fmt: skip
    print(f"written: {fused / 1e6:.2f} MB with align and sort fused, {apart / 1e6:.2f} MB "
          "with a file of each chunk in between")  # fmt: skip
    if share < LEAST:
        raise RuntimeError(f"{LEAST:.1%} of the reads must be at their true place.")
    path = given.output / "reads.png"
    picture([rate for rate, *_ in found], [one[1] for one in found]).savefig(path, dpi=120)
    print(f"Look at {path}.")
    return share


if __name__ == "__main__":
    main()
