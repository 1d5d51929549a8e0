// SPDX-License-Identifier: Apache-2.0
// plain MS: for MS ms of CPU time goroutines, growing stacks, channels, garbage.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"syscall"
	"time"
)

var sink int

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

//go:noinline
func stSpin(n int) {
	for i := 0; i < n; i++ {
		sink += i
	}
}

//go:noinline
func stDeep(n int) {
	if n == 0 {
		stSpin(100000)
	} else {
		stDeep(n - 1)
	}
	sink++
}

//go:noinline
func stSort() {
	v := make([]int, 300)
	for i := range v {
		v[i] = i * 7919 % 311
	}
	sort.Slice(v, func(i, j int) bool { return v[i] < v[j] })
	sink += len(fmt.Sprintf("%v %f", v, float64(sink)))
}

func stWorker(c chan int) {
	for n := range c {
		stDeep(n)
		for i := 0; i < 4; i++ { // as much CPU time as stDeep()
			stSort()
		}
	}
}

func main() {
	ms, _ := strconv.Atoi(os.Args[1])
	c := make(chan int)
	go stWorker(c)
	for cpuTime() < time.Duration(ms)*time.Millisecond {
		c <- 100
		stDeep(20)
	}
	close(c)
}
