// SPDX-License-Identifier: Apache-2.0
/*
 * http_ledger: processes, executables and events, as JSON lines.
 *
 * A stream of events is an answer without an end. Its connection is suspended
 * while there is nothing to say, and reporter_advance(), which comes once a
 * drain, wakes all of them. A client that does not keep up holds up nobody:
 * what it has not read when it goes from the ring is a line that says so.
 */
#include <endian.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/http/http_parse.h"
#include "reporter/ledger/ledger.h"

#define HTTP_NDJSON "application/x-ndjson"
#define HTTP_PIECE (32 << 10)
#define HTTP_SLICE_EACH 16 /* processes of one client at a time */
/* Where no slice is left, a client gets so much, that it goes on. */
#define HTTP_PIECE_LEAST (2 << 10)

/* An argument that is there, and neither 0 nor false. */
static bool http_flag(struct http_request *req, const char *name)
{
	const char *v = MHD_lookup_connection_value(
		req->conn, MHD_GET_ARGUMENT_KIND, name);

	return v && strcmp(v, "0") && strcmp(v, "false");
}

static enum MHD_Result http_send_lines(struct http_request *req,
				       struct strbuf *sb)
{
	size_t len = sb->len;
	char *text = strbuf_steal(sb);

	return http_send_text(req, text, len, HTTP_NDJSON);
}

/* Copies of what is not sent yet as much as there is room for; how much. */
static size_t http_lines_take(struct http_request *req, char *buf, size_t max)
{
	size_t n = MIN(max, req->lines.len - req->sent);

	if (n)
		memcpy(buf, req->lines.data + req->sent, n);
	req->sent += n;
	return n;
}

/*
 * A process costs 100 us, and there may be many thousands: so a few go out at a
 * time, and what the loop has to do else is done in between. All clients
 * together get HTTP_SLICE of them in a run of the daemon, each one at least.
 */
static ssize_t http_processes_more(void *arg, uint64_t pos, char *buf,
				   size_t max)
{
	struct http_request *req = arg;
	struct http *h = req->http;
	unsigned int n = MAX(h->slice, 1);
	bool more = true;

	if (req->sent == req->lines.len) {
		strbuf_reset(&req->lines);
		req->sent = 0;
		/* None of a slice may be there any more. */
		while (more && !req->lines.len && !req->lines.failed)
			more = ledger_table_read(req->table,
						 MIN(n, HTTP_SLICE_EACH),
						 &req->lines);
		h->slice -= MIN(MIN(n, HTTP_SLICE_EACH), h->slice);
		if (req->lines.failed)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (!req->lines.len)
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	return http_lines_take(req, buf, max);
}

static enum MHD_Result http_send_stream(struct http_request *req,
					MHD_ContentReaderCallback more)
{
	struct MHD_Response *resp;
	enum MHD_Result res;

	resp = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, HTTP_PIECE,
						 more, req, NULL);
	if (!resp)
		return MHD_NO;
	MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE,
				HTTP_NDJSON);
	MHD_add_response_header(resp, MHD_HTTP_HEADER_CACHE_CONTROL,
				"no-store");
	res = MHD_queue_response(req->conn, MHD_HTTP_OK, resp);
	MHD_destroy_response(resp);
	return res;
}

enum MHD_Result http_processes(struct http_request *req, bool head)
{
	struct reporter *r = req->http->r;

	req->table = ledger_table_new(r->pm, http_flag(req, "all"), r->freq_hz);
	if (!req->table)
		return MHD_NO;
	return http_send_stream(req, http_processes_more);
}

/* How much text one client may have made now; all share HTTP_SLICE. */
static size_t http_piece(struct http *h)
{
	unsigned int n = MIN(h->slice, HTTP_SLICE_EACH);

	h->slice -= n;
	return MAX(n * (HTTP_PIECE / HTTP_SLICE_EACH), HTTP_PIECE_LEAST);
}

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

/* By its short id, file id or build id; NULL: there is none. */
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

static ssize_t http_executables_more(void *arg, uint64_t pos, char *buf,
				     size_t max)
{
	struct http_request *req = arg;
	struct pm *pm = req->http->r->pm;
	struct strbuf *lines = &req->lines;
	struct pm_exe *exe;
	size_t piece;

	if (req->sent == lines->len) {
		strbuf_reset(lines);
		req->sent = 0;
		for (piece = http_piece(req->http);
		     lines->len < piece && !lines->failed;) {
			exe = pm_exe_next(pm, req->exe);
			if (!exe)
				break;
			pm_exe_get(exe);
			if (req->exe)
				pm_exe_put(req->exe);
			req->exe = exe;
			ledger_executable(exe, lines);
		}
		if (lines->failed)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (!lines->len)
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	return http_lines_take(req, buf, max);
}

enum MHD_Result http_executables(struct http_request *req, bool head)
{
	struct pm *pm = req->http->r->pm;
	struct strbuf sb = STRBUF_INIT;
	uint8_t id[HTTP_ID_MAX];
	struct pm_exe *exe;
	const char *v;
	int len;

	v = MHD_lookup_connection_value(req->conn, MHD_GET_ARGUMENT_KIND, "id");
	if (!v)
		return http_send_stream(req, http_executables_more);
	len = http_parse_id(v, id);
	if (len < 0)
		return http_error(req, MHD_HTTP_BAD_REQUEST, NULL,
				  "id: 16 to 40 hexadecimal digits, not "
				  "\"%.64s\"\n",
				  v);
	exe = http_find_exe(pm, id, (size_t)len);
	if (!exe)
		return http_error(req, MHD_HTTP_NOT_FOUND, NULL,
				  "no executable with the id %.64s\n", v);
	ledger_executable(exe, &sb);
	return http_send_lines(req, &sb);
}

static ssize_t http_events_more(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct http_request *req = arg;
	struct reporter *r = req->http->r;
	struct strbuf *lines = &req->lines;
	size_t n;

	if (req->state == HTTP_GONE)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (req->sent == lines->len) {
		strbuf_reset(lines);
		req->sent = 0;
		if (req->at < req->until)
			ledger_events_read(r->events, &req->at,
					   http_piece(req->http), lines);
		if (lines->failed)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	n = http_lines_take(req, buf, max);
	if (n)
		return n;
	if (r->finishing || !req->following)
		return MHD_CONTENT_READER_END_OF_STREAM;
	http_wait_begin(req);
	return 0;
}

static enum MHD_Result http_events_follow(struct http_request *req)
{
	struct http *h = req->http;

	if (h->r->stats.http_followers >= HTTP_FOLLOWERS_MAX ||
	    !http_may(req, HTTP_CONN_FOLLOWING, HTTP_FOLLOWERS_USER))
		return http_busy(req, "too many clients follow events");
	req->at = http_flag(req, "all") ? ledger_events_first(h->r->events)
					: ledger_events_next(h->r->events);
	req->until = UINT64_MAX;
	req->following = true;
	req->next_follower = h->followers;
	h->followers = req;
	h->r->stats.http_followers++;
	return http_send_stream(req, http_events_more);
}

void http_ledger_end(struct http_request *req)
{
	struct http_request **p = &req->http->followers;

	strbuf_fini(&req->lines);
	ledger_table_free(req->table);
	if (req->exe)
		pm_exe_put(req->exe);
	if (!req->following)
		return;
	while (*p != req)
		p = &(*p)->next_follower;
	*p = req->next_follower;
	req->http->r->stats.http_followers--;
}

enum MHD_Result http_events(struct http_request *req, bool head)
{
	struct ledger_events *events = req->http->r->events;

	if (!head && http_flag(req, "follow"))
		return http_events_follow(req);
	req->at = ledger_events_first(events);
	req->until = ledger_events_next(events);
	return http_send_stream(req, http_events_more);
}

void http_wake(struct reporter *r)
{
	struct http_request *req;
	uint64_t needed = UINT64_MAX;
	struct http *h;
	bool any;

	for (h = r->http; h; h = h->next) {
		any = false;
		for (req = h->followers; req; req = req->next_follower) {
			needed = MIN(needed, req->at);
			if (req->state != HTTP_WAITING)
				continue;
			http_wait_end(req, HTTP_READY);
			any = true;
		}
		if (any)
			http_run(h);
	}
	if (r->events)
		ledger_events_need(r->events, needed);
}
