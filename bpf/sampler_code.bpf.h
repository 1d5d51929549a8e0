/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sampler_code: the code at ip, by which user space tells where the return address of an
 * interrupted function without unwind rows is. A read costs 0.1 us, so it is made for
 * processes only that have such code; others pay for a test of one bit.
 */
#ifndef BPF_SAMPLER_CODE_BPF_H
#define BPF_SAMPLER_CODE_BPF_H

struct code_part {
	struct abi_part part;
	struct abi_code code;
};

/* False: there is none. At the end of a mapping a quarter of it. */
static __always_inline bool code_copy(struct code_part *c, __u64 ip)
{
	c->part.type = ABI_PART_CODE;
	c->part.size = sizeof(c->code);
	c->code.size = ABI_CODE_MAX;
	if (!bpf_probe_read_user(c->code.bytes, ABI_CODE_MAX, (void *)ip))
		return true;
	c->code.size = ABI_CODE_MAX / 4;
	return !bpf_probe_read_user(c->code.bytes, ABI_CODE_MAX / 4, (void *)ip);
}

#endif /* BPF_SAMPLER_CODE_BPF_H */
