// SPDX-License-Identifier: Apache-2.0
/* names: see tracehandler/names.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracehandler/names.h"

/* Another request may succeed. -EBADMSG: the file is quarantined for some time. */
static bool trace_names_transient(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
	       err == -ETIMEDOUT || err == -ECANCELED || err == -EAGAIN ||
	       err == -EBADMSG || err == -EIO;
}

static void trace_names_answer(void *arg, int err, void *const *tags,
			       const struct symbolizer_symbol *syms, size_t n)
{
	struct trace_names *ns = arg;
	struct trace_frame *f;

	ns->pending -= n;
	for (size_t i = 0; i < n; i++) {
		f = tags[i];
		if (f->meet) {
			trace_frame_meet(ns->cache, f, err ? NULL : &syms[i]);
		} else {
			f->pending = false;
			if (!err)
				trace_frame_known(ns->cache, f, &syms[i]);
		}
		if (!f->pending && !f->nlines)
			trace_late_add(ns->late, f);
		if (err && trace_names_transient(err))
			trace_frame_forget(ns->cache, f);
		trace_frame_put(ns->cache, f);
	}
	trace_waits_answered(ns->waits);
}

void trace_names_fini(struct trace_names *ns)
{
	if (ns->pm)
		pm_names_cancel(ns->pm, trace_names_answer, ns);
}

static int trace_names_ask(struct trace_names *ns, struct trace_frame *f,
			   struct pm_exe *source, uint64_t time)
{
	int err = pm_exe_name_at(source, f->place.id, time, f,
				 trace_names_answer, ns);

	f->refs += !err;
	ns->pending += !err;
	return err;
}

int trace_names_want(struct trace_names *ns, struct trace_frame *f,
		     uint64_t time)
{
	struct pm_exe *sources[PM_CODE_SOURCES];
	size_t i, n = pm_exe_code_sources(f->place.exe, sources);
	int err = 0;

	if (n > 1)
		err = trace_frame_expect(f, (uint32_t)n);
	for (i = 0; i < n && !err; i++)
		err = trace_names_ask(ns, f, sources[i], time);
	if (!err || i < 2)
		return err;
	/* The others answer, after which the frame is not used again. */
	f->meet->asked = (uint32_t)i - 1;
	trace_frame_forget(ns->cache, f);
	return 0;
}

/* The ELF virtual address, or the file offset if no segment is known there. */
static uint64_t trace_names_vaddr(const struct trace_frame *f)
{
	const struct symbolizer_segment *seg;
	size_t i, n = 0;

	seg = pm_exe_segments(f->place.exe, &n);
	for (i = 0; i < n; i++)
		if (f->place.id - seg[i].offset < seg[i].size)
			return seg[i].vaddr + (f->place.id - seg[i].offset);
	return f->place.id;
}

/* Sets f->vaddr. Returns the text before the address. */
static const char *trace_names_base(struct trace_frame *f)
{
	struct pm_exe_info info;

	pm_exe_info(f->place.exe, &info);
	if (info.kind == PM_EXE_KERNEL)
		return "[kernel]";
	if (info.kind == PM_EXE_ANON)
		return "[anon]";
	if (f->vaddr == f->place.id)
		f->vaddr = trace_names_vaddr(f);
	return info.base ? info.base : "[unknown]";
}

static bool trace_names_is_memory(const struct trace_frame *f)
{
	struct pm_exe_info info;

	if (!reporter_place_exe(&f->place))
		return false;
	pm_exe_info(f->place.exe, &info);
	return info.kind == PM_EXE_ANON;
}

void trace_names_plain(struct trace_frame *f)
{
	const char *base = "[unknown]";
	char *text;

	if (reporter_place_exe(&f->place))
		base = trace_names_base(f);
	/* All memory of a process is one function: its addresses are of no use. */
	if (trace_names_is_memory(f))
		text = strdup(base);
	else if (asprintf(&text, "%s+0x%" PRIx64, base, f->start ?: f->vaddr) <
		 0)
		text = NULL;
	trace_frame_plain(f, text);
}
