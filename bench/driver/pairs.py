# SPDX-License-Identifier: MIT
"""Two or more programs that do the same, in turns: what another load on the machine costs one, it costs the other."""
import os
import statistics


def core():
    """The core to pin to: the last one that we may use; interrupts mostly go to the first."""
    return max(os.sched_getaffinity(0))


def pin(number):
    """For subprocess's preexec_fn."""
    return lambda: os.sched_setaffinity(0, {number})


def ordinary():
    """For subprocess's preexec_fn: an ordinary priority, whatever we run with. The threads of Go's compiler wait for
    one another by spinning: with real-time priorities (chrt -f) they keep both cores for ever."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def in_turns(rounds, runs, progress=None):
    """runs: {name: function that measures once}. {name: [figures, one for each round]}; the order turns each round."""
    names = list(runs)
    figures = {name: [] for name in names}
    for i in range(rounds):
        for name in names if i % 2 == 0 else names[::-1]:
            figures[name].append(runs[name]())
        if progress:
            progress(i + 1, rounds)
    return figures


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def ratio(ours, peer):
    """The ratio of the medians, with the smallest and the largest of one round."""
    each = [a / b for a, b in zip(ours, peer)]
    return {
        "ratio": statistics.median(ours) / statistics.median(peer),
        "ratio_min": min(each),
        "ratio_max": max(each),
    }


def paired(ours, peer):
    """As ratio(), but the median of the ratios of single rounds: where the machine as a whole is faster and slower in
    turns of several rounds."""
    each = [a / b for a, b in zip(ours, peer)]
    return {"ratio": statistics.median(each), "ratio_min": min(each), "ratio_max": max(each)}
