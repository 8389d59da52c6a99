// SPDX-License-Identifier: MIT

package main

import "sync"

func empty(wg *sync.WaitGroup) {
	wg.Done()
}

func batches(batch, n int) {
	for i := 0; i < n; i++ {
		var wg sync.WaitGroup
		wg.Add(batch)
		for j := 0; j < batch; j++ {
			go empty(&wg)
		}
		wg.Wait()
	}
}

func spawn() {
	batch := argument(1, 1)
	n := argument(2, 4000000) / batch
	if n < 1 {
		n = 1
	}
	batches(batch, n/10+1)
	measure(n*batch, func() { batches(batch, n) })
}
