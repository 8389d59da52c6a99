#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""virtual.py PROGRAM [ARGUMENT]...: runs a program of asyncio on a clock that jumps: when every task waits, it is at
once the time at which the first of them goes on. time.monotonic(), time.perf_counter() and time.sleep() know
that clock."""
import runpy
import selectors
import sys
import time

now = 0.0


def jump(seconds):
    global now
    now = round(now + max(seconds, 0), 9)  # whole nanoseconds: no dust gathers


class JumpingSelector(selectors.DefaultSelector):
    """What asyncio waits with. Sockets are real, so bytes on the way get a moment before the clock jumps."""
    def select(self, timeout=None):
        events = super().select(0)
        if not events and timeout is None:
            return super().select(None)
        if not events and timeout > 0:
            if len(self.get_map()) > 1:  # the loop's own wake-up, and sockets
                events = super().select(0.02)
            if not events:
                jump(timeout)
        return events


time.monotonic = time.perf_counter = lambda: now
time.sleep = jump
selectors.DefaultSelector = JumpingSelector
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
