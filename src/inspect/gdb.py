# SPDX-License-Identifier: MIT
"""Tasks of libresha in gdb: of live processes and of core files. Type `help resha`.

All that is shown is read from memory, by what the debug information says of the structs in src/core/task.h and loop.h:
nothing is called in the process, no register is written. A task that does not run is shown by an unwinder of ours:
while it is wanted, the innermost frame of a thread is said to have been called by what rs_switch() has saved on that
task's stack (src/sys/switch_*.S).

A hundred thousand tasks are looked at in seconds because slabs of tasks are read as a whole, and unpacked without gdb's
values."""

import bisect
import collections
import re
import struct
import time

import gdb
from gdb.unwinder import Unwinder, register_unwinder

MARK_RUN = 44       # RS_MARK_RUN: of rs_task.mark, the bits of the task
ALIKE = 10          # as many likes are shown of a row
DEPTH = 64          # frames of a stack
STACK_MAX = 16384   # bytes of a stack that are compared
LONG = 1 << 24      # no list has more
FOREVER = 2**63 - 1
ATTENTION_CANCELLED = 1
WHOM_CHILDREN, WHOM_ONE = 0, 1  # rs_whom_form
INSIDE = {"rs_switch", "rs_switch_new", "transfer", "park", "rs_wait", "rs_wait_for", "rs_yield", "rs_budget_yield",
          "rs_operation_wait", "rs_operation", "rs_enter", "rs_enter_slow", "rs_complete", "rs_circle_check"}
BOTTOM = {"rs_task_entry", "rs_switch_bottom"}


# ---- memory ----

def read(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes()


class Layout:
    """Where the fields of a struct lie, by its debug information."""

    def __init__(self, name):
        try:
            self.type = gdb.lookup_type("struct " + name)
        except gdb.error:
            raise gdb.GdbError("libresha is there, but not its debug information (struct %s): install that, or build "
                               "it with -g" % name) from None
        self.size = self.type.sizeof
        self.fields = {}

    def _find(self, kind, name):
        for f in kind.fields():
            if f.name == name:
                return f.bitpos // 8, f.type.strip_typedefs()
            if not f.name or f.is_base_class:
                inner = self._find(f.type.strip_typedefs(), name)
                if inner:
                    return inner[0] + f.bitpos // 8, inner[1]
        return None

    def find(self, path):
        at, kind = 0, self.type
        for name in path.split("."):
            found = self._find(kind, name)
            if not found:
                return None
            at, kind = at + found[0], found[1]
        return at, kind

    def has(self, path):
        return self.find(path) is not None

    def offset(self, path):
        return self.field(path)[0]

    def field(self, path):
        field = self.fields.get(path)
        if field is None:
            found = self.find(path)
            if not found:
                raise gdb.GdbError("%s has no %s: this script is not of libresha's version" % (self.type, path))
            at, kind = found
            letter = {1: "B", 2: "H", 4: "I", 8: "Q"}.get(kind.sizeof, "B")
            if kind.code == gdb.TYPE_CODE_INT and letter != "B" and "unsigned" not in str(kind):
                letter = letter.lower()
            field = self.fields[path] = (at, struct.Struct("<" + letter))
        return field


class Record:
    """A copy of a struct of the process."""
    __slots__ = ("layout", "address", "data", "base")

    def __init__(self, layout, address, data=None, base=0):
        self.layout = layout
        self.address = address
        self.data = read(address, layout.size) if data is None else data
        self.base = base

    def __getitem__(self, path):
        at, unpack = self.layout.fields.get(path) or self.layout.field(path)
        return unpack.unpack_from(self.data, self.base + at)[0]


class Memory:
    """What one command reads: layouts, and texts by their addresses."""

    def __init__(self):
        self.layouts = {}
        self.texts = {0: None}

    def layout(self, name):
        if name not in self.layouts:
            self.layouts[name] = Layout(name)
        return self.layouts[name]

    def record(self, name, address):
        return Record(self.layout(name), address)

    def try_record(self, name, address):
        try:
            return self.record(name, address) if address else None
        except gdb.MemoryError:
            return None

    def text(self, address):
        if address not in self.texts:
            try:
                value = gdb.Value(address).cast(gdb.lookup_type("char").pointer())
                self.texts[address] = value.string(errors="replace", length=-1)
            except (gdb.error, UnicodeError):
                self.texts[address] = None
        return self.texts[address]


# ---- tasks ----

class Task:
    __slots__ = ("loop", "address", "mark", "id", "name", "site", "state", "sp", "stack", "wait", "whom", "what",
                 "object", "since", "due", "deadline", "group", "parent", "children", "waits_for", "cancelled",
                 "ignored", "item", "items", "circle")

    def title(self):
        text = "#%s %s" % (self.loop.label(self), self.name or "?")
        if self.items:
            text += " (%d of %d, %s)" % (self.item, self.items, self.site or "?")
        elif self.site:
            text += " (%s)" % self.site
        return text


def duration(ns):
    for unit, size in (("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return "%.1f %s" % (ns / size, unit)
    return "%d ns" % ns


def until(ns, ahead, past):
    """A time that may be past: of a loop that is blocked, it is."""
    return (past if ns < 0 else ahead) % duration(abs(ns))


def clock():
    """The clock of a loop now, where the process is one of this machine; a core file has what the loop saw last."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return time.monotonic_ns() if connection and connection.type == "native" else 0


class Loop:
    """One loop with all of its tasks, as they are now."""

    def __init__(self, memory, address, alone):
        self.memory = memory
        self.alone = alone
        self.record = r = memory.record("rs_loop", address)
        self.number = r["last_mark"] >> MARK_RUN
        self.now = max(r["now"], 0 if r["simulated"] else clock())
        self.tid = r["tid"]
        self.deadlines = {}
        self.owners = {}
        self.whoms = {0: None}
        self.missing = 0  # tasks whose stacks cannot be read
        self.tasks = {}
        for task in self.read_tasks():
            self.tasks[task.address] = task
        self.join()

    def label(self, task):
        return str(task.id) if self.alone else "%d.%d" % (self.number, task.id)

    def read_tasks(self):
        m = self.memory
        slab, layout = m.layout("rs_slab"), m.layout("rs_task")
        first, fn = slab.offset("tasks"), layout.field("fn")[0]
        at, following = self.record["slabs.first"], slab.field("node.next")
        count = 0
        while at and count < LONG:
            data = read(at, slab.size)
            for base in range(first, slab.size - layout.size + 1, layout.size):
                if data[base + fn:base + fn + 8] != b"\0\0\0\0\0\0\0\0":
                    yield self.read_task(Record(layout, at + base, data, base))
            at = following[1].unpack_from(data, following[0])[0]
            count += 1

    def read_task(self, r):
        t, text = Task(), self.memory.text
        t.loop, t.address, t.mark, t.id = self, r.address, r["mark"], r["id"]
        t.name = self.memory.text(r["name"]) if not r["named"] else text(r["name"])
        t.site, t.sp, t.stack, t.group = text(r["site"]), r["sp"], r["stack"], r["group"]
        t.item, t.items, t.ignored = r["item"], r["items"], r["ignored"]
        t.cancelled = bool(r["attention"] & ATTENTION_CANCELLED)
        t.wait, t.whom, t.what, t.object, t.due = r["wait"], r["whom"], None, 0, None
        t.parent, t.children, t.waits_for, t.circle = None, [], [], False
        since = r["since"] if self.layout_has_since() else 0
        t.since = self.now - since if since else None
        t.deadline = self.deadline(r["scope"])
        if r.address == self.record["current"]:
            t.state = "runs"
        elif not t.sp:
            t.state = "new"
        elif t.wait:
            t.state = "waits"
            self.read_wait(t, r)
        else:
            t.state = "ready"
        return t

    def layout_has_since(self):
        if not hasattr(self, "_since"):
            self._since = self.memory.layout("rs_task").has("since")
        return self._since

    def read_wait(self, t, r):
        layout = self.memory.layout("rs_wait")
        inside = t.wait - r.address
        try:
            if 0 <= inside < self.memory.layout("rs_task").size:
                w = Record(layout, t.wait, r.data, r.base + inside)
                if r["sleep.seq"]:
                    t.due = r["sleep.deadline"] - self.now
            else:
                w = Record(layout, t.wait)
        except gdb.MemoryError:
            self.missing += 1
            return
        if w["task"] != t.address:
            self.missing += 1
            return
        t.what, t.object = self.memory.text(w["what"]), w["object"]

    def deadline(self, scope):
        """The first of the deadlines around, up to a shield; by the loop's clock."""
        chain, first = [], FOREVER
        while scope and scope not in self.deadlines and len(chain) < 1000:
            r = self.memory.try_record("rs_scope", scope)
            if not r:
                break
            chain.append((scope, r["timer.deadline"] if r["timer.seq"] else FOREVER, r["shield"]))
            scope = r["parent"]
        first = self.deadlines.get(scope, FOREVER)
        for at, own, shield in reversed(chain):
            first = own if shield else min(own, first)
            self.deadlines[at] = first
        return first

    def owner_of(self, group):
        """The task whose frame the group lies in."""
        if group not in self.owners:
            r = self.memory.try_record("rs_group", group)
            self.owners[group] = r["scope.task"] if r else 0
        return self.owners[group]

    def join(self):
        """Parents, children, and whom each waits for."""
        by_group = collections.defaultdict(list)
        for t in self.tasks.values():
            if t.group:
                by_group[t.group].append(t)
                t.parent = self.tasks.get(self.owner_of(t.group))
                if t.parent:
                    t.parent.children.append(t)
        for t in self.tasks.values():
            t.children.sort(key=lambda c: c.mark)
            if t.state == "waits" and t.whom:
                t.waits_for = self.whom(t, by_group)
        mark_circles(self.tasks.values())

    def whom(self, t, by_group):
        """By what rs_whom says for who looks from outside."""
        kind = self.whom_of(t)
        if kind is None:
            return []
        if kind["form"] == WHOM_CHILDREN:
            return by_group.get(t.object, [])
        try:
            return self.one_of(t, kind) if kind["form"] == WHOM_ONE else self.many_of(t, kind)
        except gdb.MemoryError:
            return []

    def whom_of(self, t):
        if t.whom not in self.whoms:
            self.whoms[t.whom] = self.memory.try_record("rs_whom", t.whom)
        return self.whoms[t.whom]

    def one_of(self, t, kind):
        """The owner of a mutex, the task of a handle."""
        task = self.tasks.get(struct.unpack("<Q", read(t.object + kind["at"], 8))[0])
        if task and kind["mark_at"] and struct.unpack("<Q", read(t.object + kind["mark_at"], 8))[0] != task.mark:
            task = None  # that one has ended, and this has its place
        return [task] if task else []

    def many_of(self, t, kind):
        """Of resha_task_wait_all(): an array of handles."""
        n, handle = struct.unpack("<Q", read(t.wait + kind["n_at"], 8))[0], self.memory.layout("resha_task")
        handles = (self.memory.record("resha_task", t.object + i * handle.size) for i in range(min(n, LONG)))
        return [self.tasks[h["_task"]] for h in handles if h["_task"] in self.tasks]

    def thread(self):
        for thread in gdb.selected_inferior().threads():
            if thread.ptid[1] == self.tid:
                return thread
        return None

    def head(self):
        thread = self.thread()
        where = ", thread %d" % thread.num if thread else ""
        n = len(self.tasks)
        text = "loop %d%s: %d task%s" % (self.number, where, n, "" if n == 1 else "s")
        if self.missing:
            text += ("\nnote: the stacks of %s are not in this file. gdb's gcore leaves them out, as it does not get "
                     "past their guards: run the program with RESHA_GUARDS=mprotect, or let the kernel write the core "
                     "(kill -ABRT)" % format(self.missing, ",d"))
        return text


def mark_circles(tasks):
    """Tasks that wait for themselves by way of others: strongly connected ones, by Tarjan's walk without recursion."""
    index, low, on, stack, counter = {}, {}, set(), [], 0
    for root in tasks:
        if root in index or not root.waits_for:
            continue
        work = [(root, iter(root.waits_for))]
        index[root] = low[root] = counter = counter + 1
        stack.append(root)
        on.add(root)
        while work:
            t, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = counter = counter + 1
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(other.waits_for)))
                    break
                if other in on:
                    low[t] = min(low[t], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[t])
                if low[t] == index[t]:
                    part = stack[stack.index(t) if stack[-1] is not t else -1:]
                    del stack[-len(part):]
                    on.difference_update(part)
                    for member in part:
                        member.circle = len(part) > 1 or member in member.waits_for


def loops():
    """All loops of the process, the oldest first."""
    symbol = gdb.lookup_global_symbol("rs_loops")
    if symbol is None:
        try:
            gdb.parse_and_eval("(char)rs_loop_init")
        except gdb.error:
            names = [o.filename or "" for o in gdb.objfiles()]
            if not any("libresha.so" in n for n in names):
                raise gdb.GdbError("libresha is not loaded: is the process running, and the program linked with it? "
                                   "(If it is linked statically, it may have been stripped.)") from None
        raise gdb.GdbError("libresha has no debug information: install that, or build it with -g")
    memory, addresses = Memory(), []
    at = int(symbol.value())
    while at and len(addresses) < LONG:
        addresses.append(at)
        at = memory.record("rs_loop", at)["next_loop"]
    if not addresses:
        raise gdb.GdbError("no loop runs: resha_main() or resha_run() has not begun, or has ended")
    return [Loop(memory, a, len(addresses) == 1) for a in reversed(addresses)]


def find_task(all_loops, name):
    """By "17" or "2.17", which tells the loop."""
    parts = name.lstrip("#").split(".")
    if not all(p.isdigit() for p in parts) or len(parts) > 2:
        raise gdb.GdbError("\"%s\" is no task: its number as `resha tasks` shows it, 17 or 2.17" % name)
    found = [t for loop in all_loops if len(parts) == 1 or loop.number == int(parts[0])
             for t in loop.tasks.values() if t.id == int(parts[-1])]
    if not found:
        raise gdb.GdbError("no task %s (any more): `resha tasks` shows them" % name)
    if len(found) > 1:
        raise gdb.GdbError("several loops have a task %s: %s" % (name, ", ".join(t.loop.label(t) for t in found)))
    return found[0]


# ---- text ----

def names_of(tasks):
    shown = ["#%s \"%s\"" % (t.loop.label(t), t.name or "?") for t in tasks[:3]]
    return ", ".join(shown) + (", ... (%d)" % len(tasks) if len(tasks) > 3 else "")


def waits(t):
    kind = t.loop.whom_of(t)
    if kind and kind["form"] == WHOM_CHILDREN:
        n = len(t.waits_for)
        return "waits for its children" if n == 0 else "waits for %d child%s" % (n, "" if n == 1 else "ren")
    if t.what == "mutex":
        holder = "held by " + names_of(t.waits_for) if t.waits_for else "whose holder has ended without unlocking it"
        return "waits for mutex %#x, %s" % (t.object, holder)
    if t.waits_for:
        return "waits for the end of " + names_of(t.waits_for)
    if t.due is not None:
        return "sleeps, " + until(t.due, "%s left", "due %s ago")
    return "waits for %s%s" % (t.what or "?", " %#x" % t.object if t.object and t.what != "sleep" else "")


def state(t, times=True):
    text = {"runs": "runs", "new": "has not started", "ready": "waits for its turn"}.get(t.state) or waits(t)
    if t.cancelled:
        text += ", cancelled"
    if t.ignored:
        text += " (%d times ignored)" % t.ignored
    if times and t.since is not None and t.state == "waits":
        text += ", for %s" % duration(t.since)
    if times and t.deadline != FOREVER:
        text += ", deadline " + until(t.deadline - t.loop.now, "in %s", "%s ago")
    return text + (" ** in a circle of waits **" if t.circle else "")


def alike(t):
    """What makes tasks likes of one another in a tree."""
    return (t.name, t.site, t.state, t.what, t.whom, t.cancelled, t.circle, bool(t.children))


def rows(tasks):
    """(task, None), and (None, how many more) for those that are left out of a row of likes."""
    counts = collections.Counter(alike(t) for t in tasks if not t.children)
    seen = collections.Counter()
    for t in tasks:
        key = alike(t)
        seen[key] += 1
        if t.children or seen[key] <= ALIKE or counts[key] == ALIKE + 1:
            yield t, None
        elif seen[key] == counts[key]:
            yield None, counts[key] - ALIKE


def print_tree(roots):
    work = [iter([(t, n, 0) for t, n in rows(roots)])]
    while work:
        item = next(work[-1], None)
        if item is None:
            work.pop()
            continue
        t, more, depth = item
        if t is None:
            print("%s... %s more like these" % ("  " * depth, format(more, ",d")))
            continue
        print("%s%s: %s" % ("  " * depth, t.title(), state(t)))
        work.append(iter([(c, n, depth + 1) for c, n in rows(t.children)]))


def print_circles(loop):
    told = set()
    for t in sorted(loop.tasks.values(), key=lambda t: t.mark):
        if not t.circle or t in told:
            continue
        way, at = [], t
        while at not in way:
            way.append(at)
            at = next(o for o in at.waits_for if o.circle)
        way = way[way.index(at):]
        told.update(way)
        print("circle of waits, which only a cancel or a deadline can break: %s" %
              " -> ".join("#%s \"%s\"" % (loop.label(x), x.name or "?") for x in way + way[:1]))


# ---- stacks ----

class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Parked(Unwinder):
    """While `task` is set: the frame with that stack pointer and place was called by the task."""

    # As save_state of switch_*.S: register, word from the saved stack pointer.
    X86 = [("r15", 1), ("r14", 2), ("r13", 3), ("r12", 4), ("rbx", 5), ("rbp", 6), ("rip", 7)], 8, "rsp", "rip"
    ARM = [("x29", 0), ("x30", 1)] + [("x%d" % n, n - 17) for n in range(19, 29)] + [("pc", 1)], 22, "sp", "pc"

    def __init__(self):
        super().__init__("resha: tasks that do not run")
        self.task = self.at = None

    @staticmethod
    def registers(arch):
        return Parked.ARM if arch.startswith("aarch64") else Parked.X86

    def show(self, task):
        """The selected thread's stack goes on with that of the task; None: no more."""
        self.task = None
        gdb.invalidate_cached_frames()
        if task:
            frame = gdb.newest_frame()
            _, _, sp, _ = self.registers(frame.architecture().name())
            self.at = int(frame.read_register(sp)), frame.pc()
            self.task = task
            gdb.invalidate_cached_frames()

    def __call__(self, frame):
        if self.task is None:
            return None
        saved, words, sp, pc = self.registers(frame.architecture().name())
        if (int(frame.read_register(sp)) & (2**64 - 1), int(frame.read_register(pc))) != self.at:
            return None
        data = struct.unpack("<%dQ" % words, read(self.task.sp, 8 * words))
        info = frame.create_unwind_info(FrameId(gdb.Value(self.task.sp), frame.read_register(pc)))
        for name, word in saved:
            value = data[word]
            if name in ("pc", "x30"):
                value &= 2**48 - 1  # it may be signed
            info.add_saved_register(name, gdb.Value(value).cast(frame.read_register(name).type))
        info.add_saved_register(sp, gdb.Value(self.task.sp + 8 * words).cast(frame.read_register(sp).type))
        return info

    def first(self):
        """The first frame of the task that is shown."""
        frame, steps = gdb.newest_frame(), 0
        while frame and steps < DEPTH and int(frame.pc()) != self.where():
            frame, steps = frame.older(), steps + 1
        return frame

    def where(self):
        saved, words, _, pc = self.registers(gdb.newest_frame().architecture().name())
        at = dict(saved)[pc]
        return struct.unpack("<%dQ" % words, read(self.task.sp, 8 * words))[at] & (2**48 - 1)


parked = Parked()
register_unwinder(None, parked, True)


def arguments(frame):
    """Of a frame, as gdb shows them by default: scalars."""
    shown = []
    try:
        block = frame.block()
    except RuntimeError:
        return ""
    while block and not block.function:
        block = block.superblock
    for symbol in block or ():
        if symbol.is_argument:
            try:
                shown.append("%s=%s" % (symbol.name, symbol.value(frame).format_string(summary=True, max_elements=16)))
            except (gdb.error, RuntimeError):
                shown.append("%s=?" % symbol.name)
    return ", ".join(shown)


def frame_text(frame):
    place = frame.find_sal()
    where = ""
    if place.symtab:
        where = " at %s:%d" % (place.symtab.filename, place.line)
    else:
        where = " in %s" % (gdb.solib_name(int(frame.pc())) or "?")
    return "%s (%s)%s" % (frame.name() or "%#x" % frame.pc(), arguments(frame), where)


def frames(frame):
    """From the call that waits to the task's function."""
    texts, level = [], 0
    while frame and level < DEPTH:
        name = frame.name()
        if name in BOTTOM:
            break
        if name not in INSIDE or texts:
            texts.append(frame_text(frame))
        frame = frame.older()
        level += 1
    return texts + ["..."] if frame and level == DEPTH else texts


def stack_of(task):
    """Of any task, with the thread of its loop selected meanwhile."""
    before, selected = gdb.selected_thread(), None
    try:
        selected = gdb.selected_frame()
    except gdb.error:
        pass
    thread = task.loop.thread() or before
    shown = parked.task
    if thread is None:
        raise gdb.GdbError("no thread to look from")
    try:
        thread.switch()
        if task.state == "runs":
            parked.show(None)
            return frames(gdb.newest_frame())
        if task.state == "new":
            return []
        parked.show(task)
        return frames(parked.first()) if parked.where() else ["? (its stack is not in the core file)"]
    except gdb.MemoryError as e:
        return ["? (%s)" % e]
    finally:
        parked.show(None)
        before.switch()
        if shown:
            parked.show(shown)
        elif selected and selected.is_valid():
            selected.select()


def print_stack(task, stack, more=0):
    print("%s: %s%s" % (task.title(), state(task), ", and %s more like it" % format(more, ",d") if more else ""))
    for level, text in enumerate(stack):
        print("    #%d %s" % (level, text))


def code_ranges():
    """Where code lies, of the program and its libraries."""
    found = []
    for line in gdb.execute("info files", to_string=True).splitlines():
        words = line.split()
        if len(words) >= 5 and words[1] == "-" and words[3] == "is" and words[4] == ".text":
            found.append((int(words[0], 16), int(words[2], 16)))
    return sorted(found)


def place_key(task, ranges):
    """The same for tasks that wait in the same place: all on their stacks that looks like a return address. To unwind a
    hundred thousand would take minutes. Not the first, which tells what the thread did next."""
    if task.state not in ("waits", "ready"):
        return (task.state, task.address if task.state == "runs" else task.site)
    stack = task.loop.memory.try_record("rs_stack", task.stack)
    size = min(stack["top"] - task.sp if stack else 0, STACK_MAX) & ~7
    _, words, _, _ = parked.registers(gdb.selected_inferior().architecture().name())
    saved = {7} if words == 8 else {1}
    starts = [low for low, _ in ranges]
    places = []
    for at, word in enumerate(struct.unpack("<%dQ" % (size // 8), read(task.sp, size)) if size > 0 else ()):
        i = bisect.bisect_right(starts, word & (2**48 - 1)) - 1
        if at not in saved and i >= 0 and word < ranges[i][1]:
            places.append(word)
    return alike(task), tuple(places)


def in_one_place(loop):
    """(tasks, stack), for all tasks: those that wait in the same place together. What old calls have left on a stack
    may tell likes apart; their stacks bring them together again."""
    likes, ranges, found = collections.OrderedDict(), code_ranges(), collections.OrderedDict()
    for t in sorted(loop.tasks.values(), key=lambda t: t.mark):
        likes.setdefault(place_key(t, ranges), []).append(t)
    for tasks in likes.values():
        stack = stack_of(tasks[0])
        places = tuple(re.sub(r"=[^,)]*", "", text) for text in stack)  # without what arguments are
        found.setdefault((alike(tasks[0]), places), (tasks, stack))
        if found[(alike(tasks[0]), places)][0] is not tasks:
            found[(alike(tasks[0]), places)][0].extend(tasks)
    return found.values()


# ---- commands ----

class Resha(gdb.Command):
    """Tasks of libresha: `resha tasks`, `resha tree`, `resha bt ID`, `resha bt all`, `resha task ID`.

They work on a process that was stopped and on a core file alike, and only read. In a core file times are as of the
loop's last look at its clock. libresha's debug information must be there."""

    def __init__(self):
        super().__init__("resha", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)


class Tasks(gdb.Command):
    """All tasks, one a line: number, name and place of spawn, what each does or waits for.

With several loops in the process the number is LOOP.TASK."""

    def __init__(self):
        super().__init__("resha tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        if argument.strip():
            raise gdb.GdbError("resha tasks takes no argument")
        for loop in loops():
            print(loop.head())
            for t in sorted(loop.tasks.values(), key=lambda t: t.mark):
                print("  %s: %s" % (t.title(), state(t)))


class Tree(gdb.Command):
    """All tasks as a tree: below each the tasks of its groups. More than ten alike are counted.

Circles of waits (each of several tasks waits for the next) are marked, and told first."""

    def __init__(self):
        super().__init__("resha tree", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        if argument.strip():
            raise gdb.GdbError("resha tree takes no argument")
        for loop in loops():
            print(loop.head())
            print_circles(loop)
            print_tree(sorted((t for t in loop.tasks.values() if not t.parent), key=lambda t: t.mark))


class Backtrace(gdb.Command):
    """resha bt ID: the stack of a task, from the call that waits to the task's function. ID as `resha tasks` shows it.
resha bt all: of all tasks; those that wait in one place are shown once, and counted."""

    def __init__(self):
        super().__init__("resha bt", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        name = argument.strip()
        if not name:
            raise gdb.GdbError("resha bt ID, or resha bt all: whose stack? `resha tasks` shows the numbers")
        all_loops = loops()
        if name != "all":
            task = find_task(all_loops, name)
            print_stack(task, stack_of(task))
            return
        for loop in all_loops:
            print(loop.head())
            for tasks, stack in in_one_place(loop):
                print_stack(tasks[0], stack, len(tasks) - 1)


class Select(gdb.Command):
    """resha task ID: from now on the stack of the loop's thread goes on with that of this task, so that `bt`, `up`,
`frame` and `info locals` show it. The thread's own innermost frame is still the first one.
resha task: no more of that. The same when the process goes on."""

    def __init__(self):
        super().__init__("resha task", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        if not argument.strip():
            parked.show(None)
            return
        task = find_task(loops(), argument.strip())
        thread = task.loop.thread()
        if thread:
            thread.switch()
        if task.state == "new":
            raise gdb.GdbError("task %s has not started: it has no stack" % argument.strip())
        parked.show(None if task.state == "runs" else task)
        frame = gdb.newest_frame() if task.state == "runs" else parked.first()
        while frame and frame.name() in INSIDE and frame.older():
            frame = frame.older()
        if frame:
            frame.select()
        print("%s: %s" % (task.title(), state(task)))
        gdb.execute("frame")


def goes_on(_event):
    parked.task = None


for command in (Resha, Tasks, Tree, Backtrace, Select):
    command()
gdb.events.cont.connect(goes_on)
gdb.events.exited.connect(goes_on)
