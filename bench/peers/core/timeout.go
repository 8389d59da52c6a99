// SPDX-License-Identifier: MIT

package main

import "time"

// random gives the numbers of bench_random() in lib/bench.c.
type random uint64

func (r *random) next() uint64 {
	*r ^= *r >> 12
	*r ^= *r << 25
	*r ^= *r >> 27
	return uint64(*r) * 2685821657736338717
}

func oneToTwoHours(r *random) time.Duration {
	return time.Hour + time.Duration(r.next()%uint64(time.Hour))
}

func late() {
	panic("a timer of an hour has fired")
}

func timeouts(durations []time.Duration, n int) {
	for i := 0; i < n; i++ {
		time.AfterFunc(durations[i%len(durations)], late).Stop()
	}
}

func timeout() {
	n, pending := argument(1, 5000000), argument(2, 100000)
	r := random(1)
	durations := make([]time.Duration, 1024)
	for i := range durations {
		durations[i] = oneToTwoHours(&r)
	}
	timers := make([]*time.Timer, pending)
	for i := range timers {
		timers[i] = time.AfterFunc(oneToTwoHours(&r), late)
	}
	timeouts(durations, n/10)
	measure(n, func() { timeouts(durations, n) })
	for _, t := range timers {
		t.Stop()
	}
}
