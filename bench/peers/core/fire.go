// SPDX-License-Identifier: MIT

package main

import (
	"sync"
	"time"
)

func sleeps(n, tasks int, r *random) {
	var wg sync.WaitGroup
	each := n / tasks
	if each < 1 {
		each = 1
	}
	wg.Add(tasks)
	for i := 0; i < tasks; i++ {
		go func() {
			for i := 0; i < each; i++ {
				time.Sleep(time.Duration(10000 + r.next()%90000))
			}
			wg.Done()
		}()
	}
	wg.Wait()
}

func fire() {
	n, tasks := argument(1, 2000000), argument(2, 1000)
	r := random(1)
	sleeps(n/10, tasks, &r)
	measure(n, func() { sleeps(n, tasks, &r) })
}
