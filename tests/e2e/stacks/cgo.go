// SPDX-License-Identifier: Apache-2.0
// cgo MS: for MS ms of CPU time Go that calls C, which spins, and C that calls Go back.
package main

/*
#include <stdint.h>

extern void stBack(int n);

__attribute__((noinline)) static void st_spin(uint64_t n)
{
	while (n--)
		__asm__ volatile("");
}

__attribute__((noinline)) static void st_c(uint64_t n)
{
	st_spin(n);
	__asm__ volatile("");
}

__attribute__((noinline)) static void st_c_back(int n)
{
	stBack(n);
	__asm__ volatile("");
}
*/
import "C"

import (
	"os"
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

//export stBack
func stBack(n C.int) {
	stGo(int(n))
}

//go:noinline
func stGo(n int) {
	for i := 0; i < n; i++ {
		sink += i
	}
}

//go:noinline
func stCall() {
	C.st_c(1000000)
	C.st_c_back(1000000)
	stGo(1000000)
}

func main() {
	ms, _ := strconv.Atoi(os.Args[1])
	for cpuTime() < time.Duration(ms)*time.Millisecond {
		stCall()
	}
}
