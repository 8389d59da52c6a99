// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
)

func handOver(items, capacity int) {
	channel := make(chan uint64, capacity)
	go func() {
		for i := 0; i < items; i++ {
			channel <- uint64(i)
		}
		close(channel)
	}()
	expected := uint64(0)
	for item := range channel {
		if item != expected {
			fmt.Fprintf(os.Stderr, "item %d came out of order\n", item)
			os.Exit(1)
		}
		expected++
	}
	if expected != uint64(items) {
		fmt.Fprintf(os.Stderr, "%d items came\n", expected)
		os.Exit(1)
	}
}

func queue() {
	items := argument(1, 10000000)
	handOver(items/10, 1)
	measure(items, func() { handOver(items, 1) })
}

func rendezvous() {
	items := argument(1, 10000000)
	handOver(items/10, 0)
	measure(items, func() { handOver(items, 0) })
}

// Two cores: run with GOMAXPROCS=2.
func channel() {
	items, capacity := argument(1, 10000000), argument(2, 64)
	handOver(items/10, capacity)
	measure(items, func() { handOver(items, capacity) })
}
