/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel types, trimmed by hand to the members that profd's programs read.
 * Offsets are put right at load (CO-RE), so order and gaps mean nothing here;
 * names and types do. A member that some supported kernel lacks is asked for
 * with bpf_core_field_exists(); such quirks live here and nowhere else.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

