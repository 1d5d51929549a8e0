/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the profiled programs. */
#ifndef TESTS_E2E_FRAME_H
#define TESTS_E2E_FRAME_H

/*
 * At the top of a leaf function: gcc omits the frame pointer of one that needs no
 * stack, also with -fno-omit-frame-pointer, and its caller is then missing from every
 * stack. Taking the address of the frame keeps it.
 */
#define WITH_FRAME __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

#endif /* TESTS_E2E_FRAME_H */
