// SPDX-License-Identifier: Apache-2.0
/* calls: the table of system calls, and their records as events. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "processmanager/watch/internal.h"

/* clang-format off */
#define INT(name) { #name, WATCH_ARG_INT }
#define UINT(name) { #name, WATCH_ARG_UINT }
#define MODE(name) { #name, WATCH_ARG_MODE }
#define LONG(name) { #name, WATCH_ARG_LONG }
#define ULONG(name) { #name, WATCH_ARG_ULONG }
#define POINTER(name) { #name, WATCH_ARG_POINTER }
#define FD(name) { #name, WATCH_ARG_FD }
#define ENDS(name) { #name, WATCH_ARG_ENDS }
#define PAIR(name) { #name, WATCH_ARG_PAIR }
#define PATH(name) { #name, WATCH_ARG_PATH }
/* clang-format on */

static const struct watch_call calls[ABI_WATCH_CALLS] = {
#define ROW(nr, name, symbol, opens, ...)                                      \
	[nr] = { #name, symbol,		WATCH_ENTER_##name, WATCH_EXIT_##name, \
		 opens, { __VA_ARGS__ } },
#define CALL(nr, name, symbol, published, category, ...) \
	ROW(nr, name, symbol, false, __VA_ARGS__)
#define OPENS(nr, name, symbol, published, category, ...) \
	ROW(nr, name, symbol, true, __VA_ARGS__)
#define NO_EXIT(nr, name, symbol, published, category, ...) \
	[nr] = { #name, symbol, WATCH_ENTER_##name, 0, false, { __VA_ARGS__ } },
#include WATCH_CALLS
#undef CALL
#undef OPENS
#undef NO_EXIT
};

/* By name, from the first one of a system call on. */
static const struct {
	uint16_t nr;
	bool exit;
} call_names[] = {
#define CALL(nr, name, ...) { nr, false }, { nr, true },
#define OPENS CALL
#define NO_EXIT(nr, name, ...) { nr, false },
#include WATCH_CALLS
#undef CALL
#undef OPENS
#undef NO_EXIT
};

const struct watch_call *watch_call(uint32_t nr)
{
	return nr < ABI_WATCH_CALLS && calls[nr].name ? &calls[nr] : NULL;
}

const char *watch_syscall(uint32_t nr)
{
	return nr < ABI_WATCH_CALLS ? calls[nr].name : NULL;
}

int watch_call_nr(size_t name, bool *exit)
{
	if (name < ABI_WATCH_NAMES || name >= WATCH_N_NAMES)
		return -ENOENT;
	*exit = call_names[name - ABI_WATCH_NAMES].exit;
	return call_names[name - ABI_WATCH_NAMES].nr;
}

const char *watch_name_call(size_t i, struct strbuf *arguments)
{
	bool exit;
	int nr = watch_call_nr(i, &exit);

	if (nr < 0)
		return NULL;
	for (size_t k = 0; k < ABI_WATCH_ARGS && calls[nr].args[k].name; k++)
		strbuf_printf(arguments, "%s%s", k ? ", " : "",
			      calls[nr].args[k].name);
	return calls[nr].name;
}

/* --- records ------------------------------------------------------------------- */

const struct abi_watch_fd *watch_call_fd(const struct abi_watch_call *r)
{
	return r->head.flags & ABI_WATCH_DESCRIPTOR
		       ? (const struct abi_watch_fd *)(r + 1)
		       : NULL;
}

static const struct abi_watch_call *call_record(const void *record, size_t len)
{
	const struct abi_watch_call *r = record;
	const struct abi_watch_fd *fd;
	size_t size = sizeof(*r);

	if (len < size || r->head.name < ABI_WATCH_NAMES ||
	    r->head.name >= ABI_WATCH_ALL_NAMES)
		return NULL;
	fd = watch_call_fd(r);
	if (fd) {
		size += sizeof(*fd);
		if (len < size)
			return NULL;
		size += fd->text_len;
	}
	return len >= size + r->path_len[0] + r->path_len[1] ? r : NULL;
}

int watch_call_name(const void *record, size_t len)
{
	const struct abi_watch_call *r = call_record(record, len);
	const struct watch_call *call;
	unsigned int nr;
	int name;

	if (!r)
		return -EINVAL;
	nr = (r->head.name - ABI_WATCH_NAMES) / 2;
	call = watch_call(nr);
	if (!call)
		return -EINVAL;
	name = r->head.name == ABI_WATCH_CALL(nr, 1) ? call->exit : call->enter;
	return name ? name : -EINVAL;
}

static struct watch_attribute *call_add(struct watch_event *e, const char *key)
{
	struct watch_attribute *a = &e->attributes[e->n_attributes++];

	a->key = key;
	return a;
}

static void call_add_text(struct watch_event *e, const char *key, const char *s)
{
	struct watch_attribute *a = call_add(e, key);

	a->type = WATCH_STRING;
	a->s = s;
}

static void call_value(struct watch_attribute *a, enum watch_arg_kind kind,
		       uint64_t v)
{
	switch (kind) {
	case WATCH_ARG_INT:
	case WATCH_ARG_FD:
	case WATCH_ARG_ENDS:
		a->type = WATCH_INT;
		a->i = (int32_t)v;
		return;
	case WATCH_ARG_LONG:
		a->type = WATCH_INT;
		a->i = (int64_t)v;
		return;
	case WATCH_ARG_UINT:
		a->type = WATCH_UINT;
		a->u = (uint32_t)v;
		return;
	case WATCH_ARG_MODE:
		a->type = WATCH_UINT;
		a->u = (uint16_t)v;
		return;
	case WATCH_ARG_POINTER:
	case WATCH_ARG_PAIR:
	case WATCH_ARG_PATH:
		a->type = WATCH_POINTER;
		a->u = v;
		return;
	case WATCH_ARG_NONE:
	case WATCH_ARG_ULONG:
		break;
	}
	a->type = WATCH_UINT;
	a->u = v;
}

/* Where a record's texts begin. */
static const char *call_texts(const struct abi_watch_call *r)
{
	const struct abi_watch_fd *fd = watch_call_fd(r);

	return fd ? (const char *)(fd + 1) : (const char *)(r + 1);
}

/* The i-th path of a record, if it is there and ends. */
static const char *call_path_text(const struct abi_watch_call *r, size_t i)
{
	const char *text = call_texts(r) + (i ? r->path_len[0] : 0);
	size_t len = r->path_len[i];

	return len && !text[len - 1] ? text : NULL;
}

static void call_add_path(struct watch_event *e, const struct abi_watch_call *r,
			  size_t i, const struct watch_arg *arg)
{
	const char *text = call_path_text(r, i);

	if (text)
		call_add_text(e, arg->name, text);
	if (text && r->late >> i & 1)
		call_add_text(e, "path_late", arg->name);
	if (text && r->path_len[i] == ABI_WATCH_PATH_MAX)
		call_add_text(e, "path_cut", arg->name);
	if (!text && r->unread >> i & 1)
		call_add_text(e, "path_unread", arg->name);
}

static void call_add_args(struct watch_event *e, const struct abi_watch_call *r,
			  const struct watch_call *call)
{
	const struct watch_arg *arg;
	size_t paths = 0;

	for (size_t i = 0; i < ABI_WATCH_ARGS && call->args[i].name; i++) {
		arg = &call->args[i];
		if (arg->kind != WATCH_ARG_PATH || paths == ABI_WATCH_PATHS) {
			call_value(call_add(e, arg->name), arg->kind,
				   r->args[i]);
			continue;
		}
		if (!call_path_text(r, paths))
			call_value(call_add(e, arg->name), arg->kind,
				   r->args[i]);
		call_add_path(e, r, paths++, arg);
	}
}

int watch_call_decode(const void *record, size_t len, struct watch_event *out)
{
	const struct abi_watch_call *r = call_record(record, len);
	int name = watch_call_name(record, len), nr;
	const struct abi_watch_fd *fd;
	bool exit;

	if (name < 0)
		return name;
	out->name = (size_t)name;
	nr = watch_call_nr(out->name, &exit);
	fd = watch_call_fd(r);
	if (watch_name(out->name)->by_fd)
		out->category = watch_category(watch_fd_category(fd));
	if (fd)
		watch_fd_decode(fd,
				call_texts(r) + r->path_len[0] + r->path_len[1],
				&out->fd);
	call_add_args(out, r, &calls[nr]);
	if (exit)
		call_value(call_add(out, "res"), WATCH_ARG_LONG,
			   (uint64_t)r->res);
	if (r->head.flags & ABI_WATCH_EXECED) {
		out->image_new = r->head.key;
		out->image_new.exec_id = r->new_exec_id;
	}
	return 0;
}
