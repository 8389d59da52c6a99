// SPDX-License-Identifier: MIT

// The Go peers of bench/core: core QUESTION [ARGUMENTS], those of the C program of that name; and that of exec/channel.c.
// Run with GOMAXPROCS=1, or what the question says.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// argument is the number at index (from 1) after the question, or otherwise.
func argument(index int, otherwise int) int {
	if index+1 >= len(os.Args) {
		return otherwise
	}
	n, err := strconv.Atoi(os.Args[index+1])
	if err != nil || n <= 0 {
		fmt.Fprintf(os.Stderr, "'%s' is not a positive number\n", os.Args[index+1])
		os.Exit(2)
	}
	return n
}

// cpu is the processor time of the whole process so far, user and kernel.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure prints, as one line of JSON, what each of n operations of work takes.
func measure(n int, work func()) {
	wall, used := time.Now(), cpu()
	work()
	spent, passed := cpu()-used, time.Since(wall)
	fmt.Printf("{\"operations\": %d, \"cpu_ns\": %.3f, \"wall_ns\": %.3f}\n", n,
		float64(spent)/float64(n), float64(passed)/float64(n))
}

func main() {
	questions := map[string]func(){"yield": yield, "spawn": spawn, "queue": queue, "rendezvous": rendezvous,
		"channel": channel, "contended": contended, "timeout": timeout, "fire": fire}
	if len(os.Args) < 2 || questions[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: core yield|spawn|queue|rendezvous|channel|contended|timeout|fire [ARGUMENTS]")
		os.Exit(2)
	}
	questions[os.Args[1]]()
}
