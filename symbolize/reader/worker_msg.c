// SPDX-License-Identifier: Apache-2.0
/* worker_msg: see symbolize/reader/worker_msg.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbolize/context/context.h"
#include "symbolize/elf/slot.h"
#include "symbolize/reader/worker_msg.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* --- sending and receiving ------------------------------------------------ */

/* For one descriptor. CMSG_SPACE() has room for two, so CMSG_LEN() is used. */
union control {
	struct cmsghdr head;
	uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

int worker_send(int sock, struct worker_head *head, uint32_t type, size_t len,
		uint64_t job, int fd)
{
	struct iovec iov = { head, len };
	union control c = { .head = { .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS,
				      .cmsg_len = CMSG_LEN(sizeof(fd)) } };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	head->type = type;
	head->len = (uint32_t)len;
	head->job = job;
	if (fd >= 0) {
		memcpy(CMSG_DATA(&c.head), &fd, sizeof(fd));
		m.msg_control = &c;
		m.msg_controllen = CMSG_LEN(sizeof(fd));
	}
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int worker_recv(int sock, struct worker_in *in)
{
	struct iovec iov = { in->bytes, sizeof(in->bytes) };
	union control c;
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &c,
			    .msg_controllen = CMSG_LEN(sizeof(int)) };
	struct cmsghdr *h;
	ssize_t n;

	in->fd = -1;
	in->len = 0;
	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
	    h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&in->fd, CMSG_DATA(h), sizeof(in->fd));
	if (n == 0 && in->fd < 0)
		return -EPIPE;
	in->len = (size_t)n;
	if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    in->len >= sizeof(in->head) && in->head.len == in->len)
		return 0;
	worker_in_close(in);
	return -EPROTO;
}

int worker_in_take(struct worker_in *in)
{
	int fd = in->fd;

	in->fd = -1;
	return fd;
}

void worker_in_close(struct worker_in *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

/* --- checks --------------------------------------------------------------- */

/* NULL: it is shorter than 'size' bytes, or of another type. */
static const void *of_type(const struct worker_in *in, uint32_t type,
			   size_t size)
{
	return in->len < size || in->head.type != type ? NULL : in->bytes;
}

static bool errno_ok(int32_t err)
{
	return err <= 0 && err > -4096;
}

const struct worker_question *worker_question(const struct worker_in *in)
{
	const struct worker_question *q = (const void *)in->bytes;

	if (in->len < sizeof(*q) || in->fd < 0 || q->head.type < WORKER_IDENT ||
	    (q->head.type > WORKER_FIND && q->head.type != WORKER_CONTEXT) ||
	    q->n > WORKER_NAMES_MAX || q->code > 1 || q->object > 1 ||
	    (q->code && q->n % 2) || q->units > 1 ||
	    (q->code && q->head.type == WORKER_ROWS && q->n != 2) ||
	    in->len != sizeof(*q) + q->n * sizeof(uint64_t))
		return NULL;
	if (q->head.type == WORKER_FIND &&
	    (q->n == 0 || q->code || in->bytes[in->len - 1]))
		return NULL;
	if (q->head.type == WORKER_CONTEXT &&
	    (q->n || q->size > SYMBOLIZER_CONTEXT_MAX))
		return NULL;
	return q;
}

const struct worker_hello *worker_hello(const struct worker_in *in)
{
	const struct worker_hello *h = of_type(in, WORKER_HELLO, sizeof(*h));

	if (!h || in->len != sizeof(*h) || in->fd >= 0 || !errno_ok(h->err) ||
	    !memchr(h->what, '\0', sizeof(h->what)))
		return NULL;
	for (const char *s = h->what; *s; s++)
		if (*s < ' ' || *s > '~')
			return NULL;
	return h;
}

static bool answer_ok(const struct worker_in *in, const struct worker_answer *a,
		      size_t bare)
{
	return errno_ok(a->err) && a->damaged <= 1 && a->units_damaged <= 1 &&
	       (!a->err || (in->len == bare && in->fd < 0));
}

const struct worker_ident *worker_ident(const struct worker_in *in)
{
	const struct worker_ident *i = of_type(in, WORKER_IDENT, sizeof(*i));

	if (!i || !answer_ok(in, &i->a, sizeof(*i)) || in->fd >= 0 ||
	    i->build_id_len > sizeof(i->build_id) ||
	    i->n > WORKER_SEGMENTS_MAX || i->hashed > 1 ||
	    !symbolizer_slot_valid(&i->slot) ||
	    in->len != sizeof(*i) + i->n * sizeof(struct symbolizer_segment))
		return NULL;
	return i;
}

const struct worker_names *worker_names(const struct worker_in *in)
{
	const struct worker_names *a = of_type(in, WORKER_NAMES, sizeof(*a));

	if (!a || !answer_ok(in, &a->a, sizeof(*a)) || in->fd >= 0 ||
	    a->n > WORKER_NAMES_MAX || a->first > WORKER_NAMES_MAX)
		return NULL;
	return a;
}

const struct worker_rows *worker_rows(const struct worker_in *in)
{
	const struct worker_rows *r = of_type(in, WORKER_ROWS, sizeof(*r));
	uint64_t behind;

	if (!r || !answer_ok(in, &r->a, sizeof(*r)))
		return NULL;
	if (r->a.err)
		return r->bytes ? NULL : r;
	behind = r->bytes <= WORKER_INLINE_MAX ? r->bytes : 0;
	if (in->len != sizeof(*r) + behind || r->bytes == 0 ||
	    r->bytes > WORKER_TABLE_MAX ||
	    (in->fd >= 0) != (r->bytes > WORKER_INLINE_MAX))
		return NULL;
	return r;
}

const struct worker_found *worker_found(const struct worker_in *in)
{
	const struct worker_found *f = of_type(in, WORKER_FIND, sizeof(*f));

	if (!f || !answer_ok(in, &f->a, sizeof(*f)) || in->len != sizeof(*f) ||
	    in->fd >= 0)
		return NULL;
	return f;
}

const struct worker_context *worker_context(const struct worker_in *in)
{
	const struct worker_context *c =
		of_type(in, WORKER_CONTEXT, sizeof(*c));

	if (!c || !answer_ok(in, &c->a, sizeof(*c)) || in->len != sizeof(*c) ||
	    in->fd >= 0 || !symbolizer_context_valid(&c->context))
		return NULL;
	return c;
}

/* A name within a directory, or an absolute path. */
static bool ask_name_ok(const char *name, uint32_t len)
{
	if (len > WORKER_ASK_NAME_MAX || memchr(name, '\0', len) ||
	    name[len] != '\0')
		return false;
	return *name == '/' ||
	       (len <= WORKER_BASENAME_MAX && !memchr(name, '/', len) &&
		strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
}

const struct worker_ask *worker_ask(const struct worker_in *in)
{
	const struct worker_ask *a = of_type(in, WORKER_ASK, sizeof(*a));

	if (!a || in->len != sizeof(*a) || in->fd >= 0 ||
	    a->build_id_len > sizeof(a->build_id) || a->units > 1 ||
	    a->units == (a->build_id_len || a->name_len) ||
	    !ask_name_ok(a->name, a->name_len))
		return NULL;
	return a;
}

const struct worker_file *worker_file(const struct worker_in *in)
{
	const struct worker_file *f = of_type(in, WORKER_FILE, sizeof(*f));

	if (!f || in->len != sizeof(*f) || !errno_ok(f->err) ||
	    (f->err == 0) != (in->fd >= 0))
		return NULL;
	return f;
}

const struct worker_keep *worker_keep(const struct worker_in *in)
{
	const struct worker_keep *k = of_type(in, WORKER_KEEP, sizeof(*k));

	return k && in->len == sizeof(*k) && in->fd >= 0 && k->bytes &&
			       k->bytes <= WORKER_KEEP_MAX
		       ? k
		       : NULL;
}

/* --- names ---------------------------------------------------------------- */

/* A string of 'len' bytes, none of them 0, and its NUL. */
static const char *text_next(struct worker_cursor *c, uint32_t len,
			     uint32_t max)
{
	const uint8_t *s = c->p;

	if (len > max || (size_t)(c->end - s) < (size_t)len + 1 ||
	    memchr(s, '\0', len) || s[len])
		return NULL;
	c->p += len + 1;
	return (const char *)s;
}

static bool worker_function_next(struct worker_cursor *c,
				 struct symbolizer_function *out)
{
	struct worker_function f;

	if ((size_t)(c->end - c->p) < sizeof(f))
		return false;
	memcpy(&f, c->p, sizeof(f));
	c->p += sizeof(f);
	if (f.name_len == 0)
		return false;
	out->name = out->system_name =
		text_next(c, f.name_len, WORKER_TEXT_MAX);
	if (out->name && f.system_len)
		out->system_name = text_next(c, f.system_len, WORKER_TEXT_MAX);
	out->file = "";
	if (out->system_name && f.file_len)
		out->file = text_next(c, f.file_len, WORKER_SOURCE_MAX);
	out->line = f.line;
	out->start_line = f.start_line;
	return out->name && out->system_name && out->file;
}

bool worker_name_next(struct worker_cursor *c, uint64_t vaddr,
		      struct symbolizer_symbol *sym)
{
	const uint8_t *begin = c->p;
	struct worker_name n;

	if ((size_t)(c->end - c->p) < sizeof(n))
		return false;
	memcpy(&n, c->p, sizeof(n));
	c->p += sizeof(n);
	sym->functions = NULL;
	sym->nfunctions = 0;
	sym->start = sym->size = 0;
	sym->before = n.before;
	sym->after = n.after;
	sym->source = SYMBOLIZER_SOURCE_NONE;
	if (n.source >= SYMBOLIZER_N_SOURCES || n.n > WORKER_FUNCTIONS_MAX)
		return false;
	if (n.n == 0 && n.size == 0)
		return true;
	if (vaddr < n.start || vaddr - n.start >= n.size)
		return false;
	for (uint32_t i = 0; i < n.n; i++)
		if (!worker_function_next(c, &c->functions[i]))
			return false;
	sym->start = n.start;
	sym->size = n.size;
	sym->source = n.source;
	sym->functions = n.n ? c->functions : NULL;
	sym->nfunctions = n.n;
	return (size_t)(c->p - begin) <= WORKER_NAME_MAX;
}

/* Bytes of a text with its NUL; an empty text is not sent. */
static size_t worker_text_room(uint32_t len)
{
	return len ? (size_t)len + 1 : 0;
}

static size_t worker_function_head(const struct symbolizer_function *f,
				   struct worker_function *out)
{
	*out = (struct worker_function){
		.name_len = strnlen(f->name, WORKER_TEXT_MAX),
		.file_len = strnlen(f->file, WORKER_SOURCE_MAX),
		.line = f->line,
		.start_line = f->start_line,
	};
	if (f->system_name != f->name)
		out->system_len = strnlen(f->system_name, WORKER_TEXT_MAX);
	return sizeof(*out) + worker_text_room(out->name_len) +
	       worker_text_room(out->system_len) +
	       worker_text_room(out->file_len);
}

static uint8_t *worker_text_add(uint8_t *p, const char *s, uint32_t len)
{
	if (len == 0)
		return p;
	memcpy(p, s, len);
	p[len] = '\0';
	return p + len + 1;
}

static uint8_t *worker_function_add(uint8_t *p,
				    const struct symbolizer_function *f)
{
	struct worker_function head;

	worker_function_head(f, &head);
	memcpy(p, &head, sizeof(head));
	p = worker_text_add(p + sizeof(head), f->name, head.name_len);
	p = worker_text_add(p, f->system_name, head.system_len);
	return worker_text_add(p, f->file, head.file_len);
}

size_t worker_name_add(uint8_t *buf, size_t len, size_t cap,
		       const struct symbolizer_symbol *sym)
{
	struct worker_name n = { .start = sym->start,
				 .size = sym->size,
				 .before = sym->before,
				 .after = sym->after,
				 .source = sym->source };
	struct worker_function head;
	size_t need = sizeof(n), from = sym->nfunctions, size;
	uint8_t *p = buf + len;

	while (from && n.n < WORKER_FUNCTIONS_MAX) {
		size = worker_function_head(&sym->functions[from - 1], &head);
		if (!head.name_len || need + size > WORKER_NAME_MAX)
			break;
		need += size;
		from--;
		n.n++;
	}
	if (need > cap - len)
		return 0;
	memcpy(p, &n, sizeof(n));
	p += sizeof(n);
	for (; from < sym->nfunctions; from++)
		p = worker_function_add(p, &sym->functions[from]);
	return len + need;
}

/* --- tables --------------------------------------------------------------- */

/*
 * Whether it is complete and cannot be changed: sealed, and no page is missing,
 * since accessing that would allocate memory, which can fail. st_blocks
 * includes pages beyond the end, so it is also searched for holes.
 */
static bool table_ok(int fd, uint64_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS &&
	       fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	       fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == bytes &&
	       (uint64_t)st.st_blocks * 512 >= bytes &&
	       lseek(fd, 0, SEEK_HOLE) == st.st_size;
}

void *worker_table_map(int fd, uint64_t bytes)
{
	void *p;

	if (bytes == 0 || bytes > WORKER_TABLE_MAX || !table_ok(fd, bytes))
		return NULL;
	p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

int worker_table_make(const void *data, size_t bytes)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	while (done < bytes) {
		n = write(fd, (const uint8_t *)data + done, bytes - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			goto fail;
		done += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
fail:
	err = errno ? -errno : -EIO;
	close(fd);
	return err;
}
