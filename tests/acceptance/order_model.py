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
    repeat: bool = False


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


def deliveries_of_epochs(epochs, entries, ranks, batch, coalesce, end):
    """The same for a run of whole epochs. What is left for its last window, F full batches and t
    samples, is shared likewise: rank p owns F * n_p and the part of t from floor(s_p * t / B) on, and
    takes n_p at each of F iterations, the rest at one more; which `end` leaves so, fills or drops."""
    whole = epochs * entries // (coalesce * batch)
    yield from deliveries(ranks, batch, coalesce, whole * coalesce)
    begin = whole * coalesce * batch
    full, tail = divmod(epochs * entries - begin, batch)
    left, lacking = [], 0
    for rank in range(ranks):
        share = share_begin(rank, ranks, batch)
        count = share_begin(rank + 1, ranks, batch) - share
        first = begin + full * share + share * tail // batch
        own = full * count + (share + count) * tail // batch - share * tail // batch
        taken = [d.position_in_order
                 for d in deliveries(ranks, batch, coalesce, whole * coalesce) if d.rank == rank]
        taken += range(first, first + own)
        for turn in range(full + (tail > 0)):
            for position in range(count):
                index = turn * count + position
                if index < own and (turn < full or end != "drop"):
                    left.append(Delivery(whole * coalesce + turn, rank, position, first + index))
                elif index >= own and end in ("pad", "wrap"):
                    if end == "pad" and taken:
                        filled = taken[-1 - (index - own) % len(taken)]
                    else:
                        filled = (epochs - 1) * entries + lacking % entries
                    lacking += 1
                    left.append(Delivery(whole * coalesce + turn, rank, position, filled, True))
    yield from sorted(left, key=lambda delivery: (delivery.iteration, delivery.rank))


def lines_of(records, dealt):
    """The lines that `forebay samples` must print for the data set with these records."""
    entries = len(records)
    for delivery in dealt:
        epoch, sample = divmod(delivery.position_in_order, entries)
        record = records[sample]
        repeat = "true" if delivery.repeat else "false"
        yield (f'{{"epoch":{epoch},"iteration":{delivery.iteration},"rank":{delivery.rank},'
               f'"position":{delivery.position},"global":{delivery.position_in_order},'
               f'"sample":{sample},"key":"{record.key}","bytes":{record.bytes},'
               f'"xxh3":"{record.xxh3}","repeat":{repeat}}}')


def expected_lines(records, ranks, batch, coalesce, iterations):
    """Of a run of so many iterations."""
    return lines_of(records, deliveries(ranks, batch, coalesce, iterations))


def expected_lines_of_epochs(records, epochs, ranks, batch, coalesce, end):
    """Of a run of whole epochs."""
    return lines_of(records, deliveries_of_epochs(epochs, len(records), ranks, batch, coalesce, end))
