"""The strided order, written from its description and not from the library's code.

N samples, P ranks, global batch B, coalescing C. Rank p's share begins at s_p = floor(p * B / P)
and holds n_p = s_(p+1) - s_p samples. The positions form windows of C * B; inside window w rank p
owns the C * n_p positions from w * C * B + C * s_p on and takes n_p of them at each of the C
iterations. Position g holds sample g mod N, in epoch floor(g / N).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Delivery:
    iteration: int
    rank: int
    position: int
    position_in_order: int


def share_begin(rank, ranks, batch):
    return rank * batch // ranks


def deliveries(ranks, batch, coalesce, iterations, first=0):
    """Who gets which position when, sorted by (iteration, rank, position)."""
    for iteration in range(first, iterations):
        window, turn = divmod(iteration, coalesce)
        for rank in range(ranks):
            begin = share_begin(rank, ranks, batch)
            count = share_begin(rank + 1, ranks, batch) - begin
            owned = window * coalesce * batch + coalesce * begin
            for position in range(count):
                yield Delivery(iteration, rank, position, owned + turn * count + position)


def iterations_of(epochs, entries, ranks, batch, coalesce):
    """The fewest iterations after which every position of the first `epochs` epochs was taken."""
    wanted = epochs * entries
    full_windows = wanted // (coalesce * batch)
    last = full_windows * coalesce
    for delivery in deliveries(ranks, batch, coalesce, last + coalesce, first=last):
        if delivery.position_in_order < wanted:
            last = max(last, delivery.iteration + 1)
    return last


def expected_lines(records, ranks, batch, coalesce, iterations):
    """The lines that `forebay samples` must print for the data set with these records."""
    entries = len(records)
    for delivery in deliveries(ranks, batch, coalesce, iterations):
        epoch, sample = divmod(delivery.position_in_order, entries)
        record = records[sample]
        yield (f'{{"epoch":{epoch},"iteration":{delivery.iteration},"rank":{delivery.rank},'
               f'"position":{delivery.position},"global":{delivery.position_in_order},'
               f'"sample":{sample},"key":"{record.key}","bytes":{record.bytes},'
               f'"xxh3":"{record.xxh3}","repeat":false}}')
