// SPDX-License-Identifier: Apache-2.0
/* http_ledger: processes and executables as JSON lines, and streams of such lines. */
#include <endian.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/http/http_parse.h"
#include "reporter/ledger/ledger.h"

#define HTTP_PIECE (32 << 10)
#define HTTP_SLICE_EACH 16 /* processes of one client at a time */
#define HTTP_PIECE_LEAST (2 << 10) /* for progress when no slice is left */

/* Whether an argument is present and neither 0 nor false. */
static bool http_flag(struct http_request *req, const char *name)
{
	const char *v = http_arg(req, name);

	return v && strcmp(v, "0") && strcmp(v, "false");
}

/*
 * Called for the next bytes of a stream. A process costs 100 us, and there may be
 * thousands, so lines are made in slices and the loop does other work in
 * between. All clients of a run of the daemon share HTTP_SLICE processes.
 */
static ssize_t http_stream_read(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct http_request *req = arg;
	struct http *h = req->http;
	struct strbuf *lines = &req->lines;
	unsigned int slice;
	size_t n;

	if (req->state == HTTP_GONE)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (req->sent == lines->len) {
		strbuf_reset(lines);
		req->sent = 0;
		slice = MIN(h->slice, HTTP_SLICE_EACH);
		h->slice -= slice;
		req->more(req, slice);
		if (lines->failed)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	n = MIN(max, lines->len - req->sent);
	if (n) {
		memcpy(buf, lines->data + req->sent, n);
		req->sent += n;
		return n;
	}
	if (req->state == HTTP_WAITING)
		return 0; /* for a query */
	if (h->r->finishing || !req->endless)
		return MHD_CONTENT_READER_END_OF_STREAM;
	http_wait_begin(req);
	return 0;
}

enum MHD_Result http_send_stream(struct http_request *req)
{
	static const struct http_header headers[] = {
		{ MHD_HTTP_HEADER_CONTENT_TYPE, HTTP_NDJSON },
		{ MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" },
		{ NULL, NULL },
	};

	return http_queue(
		req, MHD_HTTP_OK,
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, HTTP_PIECE,
						  http_stream_read, req, NULL),
		headers);
}

size_t http_piece(unsigned int slice)
{
	return MAX(slice * (HTTP_PIECE / HTTP_SLICE_EACH), HTTP_PIECE_LEAST);
}

/* --- processes ------------------------------------------------------------- */

static void http_processes_more(struct http_request *req, unsigned int slice)
{
	/* On to the next slice if all processes of this one are gone. */
	while (ledger_table_read(req->table, MAX(slice, 1), &req->lines))
		if (req->lines.len || req->lines.failed)
			break;
}

enum MHD_Result http_processes(struct http_request *req)
{
	const struct reporter_opts *o = &req->http->r->opts;

	req->table = ledger_table_new(o->pm, http_flag(req, "all"), o->freq_hz);
	if (!req->table)
		return MHD_NO;
	req->more = http_processes_more;
	return http_send_stream(req);
}

/* --- executables ----------------------------------------------------------- */

static bool http_exe_is(const struct pm_exe *exe, const uint8_t *id, size_t len)
{
	const struct symbolizer_ident *ident;
	struct pm_exe_info i;

	pm_exe_info(exe, &i);
	ident = &i.ident;
	if (len == SYMBOLIZER_FILE_ID_LEN && !memcmp(ident->file_id, id, len))
		return i.opened;
	return len == ident->build_id_len && !memcmp(ident->build_id, id, len);
}

/* By its short id, file id or build id; NULL: not found. */
static struct pm_exe *http_find_exe(struct pm *pm, const uint8_t *id,
				    size_t len)
{
	struct pm_exe *exe;
	uint64_t v;

	if (len == sizeof(v)) {
		memcpy(&v, id, len);
		return pm_exe_by_short_id(pm, be64toh(v));
	}
	exe = pm_exe_next(pm, NULL);
	while (exe && !http_exe_is(exe, id, len))
		exe = pm_exe_next(pm, exe);
	return exe;
}

static void http_executables_more(struct http_request *req, unsigned int slice)
{
	struct strbuf *lines = &req->lines;
	size_t piece = http_piece(slice);
	struct pm_exe *exe;

	while (lines->len < piece && !lines->failed) {
		exe = pm_exe_next(req->http->r->opts.pm, req->exe);
		if (!exe)
			return;
		pm_exe_get(exe);
		if (req->exe)
			pm_exe_put(req->exe);
		req->exe = exe;
		ledger_executable(exe, lines);
	}
}

enum MHD_Result http_executables(struct http_request *req)
{
	const char *v = http_arg(req, "id");
	struct strbuf sb = STRBUF_INIT;
	uint8_t id[HTTP_ID_MAX];
	struct pm_exe *exe;
	size_t size;
	int len;

	req->more = http_executables_more;
	if (!v)
		return http_send_stream(req);
	len = http_parse_id(v, id);
	if (len < 0)
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "id: 16 to 40 hexadecimal digits, not "
				  "\"%.64s\"\n",
				  v);
	exe = http_find_exe(req->http->r->opts.pm, id, (size_t)len);
	if (!exe)
		return http_error(req, MHD_HTTP_NOT_FOUND,
				  "no executable with the id %.64s\n", v);
	ledger_executable(exe, &sb);
	size = sb.len;
	return http_send_text(req, strbuf_steal(&sb), size, HTTP_NDJSON);
}

void http_ledger_end(struct http_request *req)
{
	strbuf_fini(&req->lines);
	ledger_table_free(req->table);
	if (req->exe)
		pm_exe_put(req->exe);
}
