"""Every figure of the report, in the order of the page."""

import read_figures
import scaling_figures
import train_figures


def draw_all(results):
    return [
        scaling_figures.read_performance(results),
        scaling_figures.ladder(results),
        read_figures.time_breakdown(results),
        read_figures.seek_by_rank(results),
        read_figures.context_switches(results),
        read_figures.extra_bytes(results),
        read_figures.speculation(results),
        read_figures.block_sizes(results),
        scaling_figures.strong_scaling(results),
        scaling_figures.weak_scaling(results),
        train_figures.throughput(results),
        train_figures.time_breakdown(results),
    ]
