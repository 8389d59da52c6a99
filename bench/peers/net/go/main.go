// SPDX-License-Identifier: MIT

// Go's echo server: a goroutine and a buffer of SIZE bytes for each connection. Run with GOMAXPROCS=1.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

func echo(c net.Conn, size int) {
	defer c.Close()
	buf := make([]byte, size)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if _, err = c.Write(buf[:n]); err != nil {
			return
		}
	}
}

func main() {
	size := 0
	if len(os.Args) == 2 {
		size, _ = strconv.Atoi(os.Args[1])
	}
	if size <= 0 {
		fmt.Fprintln(os.Stderr, "usage: peer-net-go SIZE")
		os.Exit(2)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go echo(c, size)
	}
}
