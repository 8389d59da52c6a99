// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

const lockers = 4

func contend(n int) {
	var mutex sync.Mutex
	var wg sync.WaitGroup
	each, counter := n/lockers, 0
	wg.Add(lockers)
	for i := 0; i < lockers; i++ {
		go func() {
			for i := 0; i < each; i++ {
				mutex.Lock()
				before := counter
				runtime.Gosched()
				counter = before + 1
				mutex.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	if counter != each*lockers {
		fmt.Fprintf(os.Stderr, "the mutex let two in: %d\n", counter)
		os.Exit(1)
	}
}

func contended() {
	n := argument(1, 10000000)
	contend(n / 10)
	measure(n, func() { contend(n) })
}
