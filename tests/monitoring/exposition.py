# SPDX-License-Identifier: MIT
"""The rules of the text exposition format 0.0.4 of Prometheus, as its documentation states them. check(text) gives what
is wrong, read(text) the samples as {(name, ((label, value), ...)): number}."""
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,|(?=\}})))*)\}})? (\S+)(?: (-?\d+))?")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


def value_of(text):
    if text in ("+Inf", "-Inf", "NaN"):
        return float(text.replace("Inf", "inf"))
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return float(text)
    return None


def family_of(name, types):
    for end in ("_bucket", "_sum", "_count"):
        if name.endswith(end) and types.get(name[:-len(end)]) in ("histogram", "summary"):
            return name[:-len(end)]
    return name


def parse(text):
    """(samples, problems)"""
    types, helps, samples, problems, closed, now = {}, set(), {}, [], set(), None
    if not text.endswith("\n"):
        problems.append("the last line does not end with a line feed")
    for number, line in enumerate(text.split("\n")[:-1], 1):
        def wrong(what):
            problems.append(f"line {number}: {what}: {line[:100]}")
        head = re.fullmatch(rf"# (HELP|TYPE) ({NAME})(?: (.*))?", line)
        sample = SAMPLE.fullmatch(line)
        if not line or (line.startswith("#") and not head and not re.match(r"# ?(HELP|TYPE)\b", line)):
            continue
        if head:
            family = head[2]
        elif sample:
            family = family_of(sample[1], types)
        else:
            wrong("neither a comment nor a sample")
            continue
        if family != now and family in closed:
            wrong("a family in two groups")
        if now and family != now:
            closed.add(now)
        now = family
        if head and head[1] == "HELP":
            if family in helps:
                wrong("a second HELP")
            if re.search(r"\\(?![\\n])", (head[3] or "").replace("\\\\", "")):
                wrong("an escape that there is not in HELP")
            helps.add(family)
        elif head:
            if family in types:
                wrong("a second TYPE")
            if any(family_of(name, types) == family for name, _ in samples):
                wrong("TYPE behind samples")
            if head[3] not in TYPES:
                wrong("no such type")
            types[family] = head[3]
        else:
            labels = tuple(sorted(m.groups() for m in re.finditer(LABEL, sample[2] or "")))
            number_of = value_of(sample[5])
            if number_of is None:
                wrong("no number")
                continue
            if len({name for name, _ in labels}) != len(labels):
                wrong("a label twice")
            if (sample[1], labels) in samples:
                wrong("the same sample again")
            if types.get(family) == "counter" and not number_of >= 0:
                wrong("a counter below 0")
            samples[sample[1], labels] = number_of
    problems += histograms(types, samples)
    problems += [f"{family}: no HELP, or no TYPE" for family in {family_of(n, types) for n, _ in samples}
                 if family not in types or family not in helps]
    return samples, problems


def histograms(types, samples):
    for family in (f for f, t in types.items() if t == "histogram"):
        series = {}
        for (name, labels), value in samples.items():
            if name == family + "_bucket":
                rest = tuple(x for x in labels if x[0] != "le")
                series.setdefault(rest, []).append((value_of(dict(labels).get("le", "")), value))
        for rest, buckets in series.items():
            bounds, counts = zip(*buckets)
            if None in bounds or list(bounds) != sorted(set(bounds)):
                yield f"{family}{rest}: bounds are not in order"
            elif bounds[-1] != math.inf:
                yield f"{family}{rest}: no bucket +Inf"
            elif list(counts) != sorted(counts):
                yield f"{family}{rest}: buckets are not cumulative"
            elif samples.get((family + "_count", rest)) != counts[-1]:
                yield f"{family}{rest}: the count is not that of bucket +Inf"
            if (family + "_sum", rest) not in samples:
                yield f"{family}{rest}: no sum"


def check(text):
    return parse(text)[1]


def read(text):
    return parse(text)[0]
