// SPDX-License-Identifier: MIT

package main

import (
	"runtime"
	"sync"
)

const ring = 64

func yields(laps int) {
	var wg sync.WaitGroup
	wg.Add(ring)
	for i := 0; i < ring; i++ {
		go func() {
			for i := 0; i < laps; i++ {
				runtime.Gosched()
			}
			wg.Done()
		}()
	}
	wg.Wait()
}

func yield() {
	laps := argument(1, 20000000) / ring
	yields(laps / 10)
	measure(laps*ring, func() { yields(laps) })
}
