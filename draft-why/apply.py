import os, shutil
def sub(p, *pairs):
    s = open(p).read()
    for a, b in pairs:
        assert a in s, (p, a)
        s = s.replace(a, b, 1)
    open(p, 'w').write(s)
W='/tmp/b30why/'
for f, d in (('why.c','profiler/waiting'),('why.h','profiler/waiting'),('step.h','reporter/ledger'),('step.c','reporter/ledger'),('test_why.c','tests/unit/profiler'),('put.h','profiler/timeline'),('cmd_why.c','profiler/timeline')):
    shutil.copy(W+f, d+'/'+f)
# put.c from cmd_timeline.c
s=open('profiler/timeline/cmd_timeline.c').read()
a=s.index("static uint64_t timeline_u64"); b=s.index("static void timeline_put(struct strbuf *sb")
mid=s[a:b]
s=s[:a]+s[b:]
s=s.replace('#include "profiler/cmd/lines.h"\n','#include "profiler/cmd/lines.h"\n#include "profiler/timeline/put.h"\n')
i=mid.index("	strbuf_printf(sb, \"%-15s %7s"); j=mid.index("}\n",i)
colhead=mid[i:j]
mid=mid[:i]+mid[j:]
s=s.replace("		timeline_put_header(&sb, o);\n","		timeline_put_columns(&sb, o);\n")
s=s.replace("static void timeline_put(struct strbuf *sb","static void timeline_put_columns(struct strbuf *sb, const json_t *o)\n{\n	timeline_put_header(sb, o, \"segments\");\n"+colhead+"}\n\nstatic void timeline_put(struct strbuf *sb",1)
s=s.replace("	lines_duration(&text, timeline_u64(o, \"duration_ns\"));\n","	timeline_put_ns(&text, o, \"duration_ns\");\n")
open('profiler/timeline/cmd_timeline.c','w').write(s)
mid=mid.replace("static void timeline_put_header(struct strbuf *sb, const json_t *o)","void timeline_put_header(struct strbuf *sb, const json_t *o, const char *what)")
mid=mid.replace("static void timeline_put_why","void timeline_put_why")
mid=mid.replace('" segments, lost since then: ",\n		      lines_int(o, "segments"));','" %s, lost since then: ",\n		      lines_int(o, what), what);')
assert '%s, lost' in mid
mid=mid.replace("static void timeline_put_waker","void timeline_put_ns(struct strbuf *sb, const json_t *o, const char *key)\n{\n	if (lines_has(o, key))\n		lines_duration(sb, timeline_u64(o, key));\n}\n\n/* \"redis-server 12/14\"; perhaps. */\nstatic void timeline_put_waker",1)
mid=mid.replace('/* "redis-server 12/14"; perhaps. */\nvoid timeline_put_ns','void timeline_put_ns',1)
open('profiler/timeline/put.c','w').write('''// SPDX-License-Identifier: Apache-2.0
/* put: see profiler/timeline/put.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/lines.h"
#include "profiler/timeline/put.h"

'''+mid.rstrip()+"\n")
sub('profiler/cmd/options.h',("	X(STATUS, status, \"status\", \"\", ","""	X(WHY, why, "why", " PID",                                              \\
	  "Print where the time of a thread went, through what woke it, from\\n" \\
	  "a running profd with --wait.")                                       \\
	X(STATUS, status, "status", "", """))
sub('profiler/cmd/options.def',('NUMBER, 0, TIMELINE, 1','NUMBER, 0, TIMELINE | WHY, 1'),
('"TID", NULL, "only thread TID")\n','''"TID", NULL, "only thread TID; of profd why, unless given, the first one")
OPTION(why_from, "from", NO_KEY,
       STRING, 0, WHY, 0, 0,
       "TIME", "10s",
       "the begin: 10s (ago), 14:30:05.25, 2026-08-21 14:30:05.25")
OPTION(why_to, "to", NO_KEY,
       STRING, 0, WHY, 0, 0,
       "TIME", "now", "the end")
''') if False else ('OPTION(timeline_tid','''OPTION(why_from, "from", NO_KEY,
       STRING, 0, WHY, 0, 0,
       "TIME", "10s",
       "the begin: 10s (ago), 14:30:05.25, 2026-08-21 14:30:05.25")
OPTION(why_to, "to", NO_KEY,
       STRING, 0, WHY, 0, 0,
       "TIME", "now", "the end")
OPTION(timeline_tid'''),
('"TID", NULL, "only thread TID")','"TID", NULL, "only thread TID; of profd why, unless given, the first one")'))
s=open('profiler/cmd/options.def').read()
s=s.replace("EVENTS | WATCH | TIMELINE | STATUS | DEBUG_FILES","EVENTS | WATCH | TIMELINE | WHY | STATUS | DEBUG_FILES").replace("EVENTS | TIMELINE | STATUS | DEBUG_FILES","EVENTS | TIMELINE | WHY | STATUS | DEBUG_FILES").replace("WATCH | TIMELINE | STATUS | REPORT","WATCH | TIMELINE | WHY | STATUS | REPORT")
open('profiler/cmd/options.def','w').write(s)
# segment.c: shared members
sub('reporter/ledger/segment.h',('/* Appends the first line: which','''struct line;
/* The members of the first line, and of a segment's; 'what': not of its thread only. */
void ledger_put_timeline(struct line *l, const struct reporter_timeline *t);
void ledger_put_segment(struct line *l, const struct reporter_segment *s,
			struct pm *pm, bool what);
/* Appends the first line: which'''))
s=open('reporter/ledger/segment.c').read()
a=s.index("void ledger_timeline("); b=s.index("/* The name of its process")
s=s[:a]+'''void ledger_put_timeline(struct line *l, const struct reporter_timeline *t)
{
	line_int(l, "pid", t->key.tgid);
	segment_ids(l, &t->key, false);
	line_time(l, "since", t->since);
	segment_ns(l, "since_boot_ns", t->since);
	line_put(l, "begun", json_boolean(t->begun));
	segment_ns(l, "from_boot_ns", t->from);
	segment_ns(l, "to_boot_ns", t->to);
	line_put(l, "lost",
		 json_pack("{s:I, s:I, s:I}", "rate", (json_int_t)t->lost_rate,
			   "ring", (json_int_t)t->lost_ring, "memory",
			   (json_int_t)t->lost_memory));
}

void ledger_timeline(const struct reporter_timeline *t, struct strbuf *sb)
{
	struct line l = line_new(line_wall());

	ledger_put_timeline(&l, t);
	line_int(&l, "segments", t->n);
	line_end(&l, sb);
}

'''+s[b:]
a=s.index("void ledger_segment(")
s=s[:a]+'''void ledger_put_segment(struct line *l, const struct reporter_segment *s,
			struct pm *pm, bool what)
{
	const struct abi_segment *of = &s->of;
	bool open = of->flags & ABI_SEGMENT_OPEN;

	line_time(l, "time", of->begin);
	segment_ns(l, "time_boot_ns", of->begin);
	segment_ns(l, "duration_ns", of->end - of->begin);
	line_int(l, "pid", of->key.tgid);
	line_int(l, "tid", of->tid);
	line_text(l, "thread", of->comm, strnlen(of->comm, ABI_COMM_LEN));
	segment_ids(l, &of->key, true);
	if (!what)
		return;
	segment_what(l, of->what);
	if (open)
		line_put(l, "open", json_true());
	if (ABI_WAIT_WHAT_REASON(of->what) >= ABI_WAIT_SLEEP && !open) {
		segment_ns(l, "latency_ns", s->latency);
		segment_put_waker(l, pm, &of->waker);
	}
}

void ledger_segment(const struct reporter_segment *s, struct pm *pm,
		    int64_t wall, struct strbuf *sb)
{
	struct line l = line_new(wall);

	ledger_put_segment(&l, s, pm, true);
	line_end(&l, sb);
}
'''
open('reporter/ledger/segment.c','w').write(s)
# cmd_why: parameters
s=open('profiler/timeline/cmd_why.c').read()
s=s.replace('''	strbuf_puts(&v.path, "/why?");
	if (o->timeline_tid)
		strbuf_printf(&v.path, "tid=%" PRIu64, o->timeline_tid);
	status = why_moment(&v, "from", o->why_from);
	if (!status)
		status = why_moment(&v, "to", o->why_to);
''','''	strbuf_puts(&v.path, "/why?");
	status = why_moment(&v, "from", o->why_from);
	if (!status)
		status = why_moment(&v, "&to", o->why_to);
	if (o->timeline_tid)
		strbuf_printf(&v.path, "&tid=%" PRIu64, o->timeline_tid);
''').replace('''				 "now)",
				 key, text);
	strbuf_printf(&v->path, "&%s=@%"''','''				 "now)",
				 key + (*key == '&'), text);
	strbuf_printf(&v->path, "%s=@%"''')
open('profiler/timeline/cmd_why.c','w').write(s)
sub('reporter/reporter.h',('#include "reporter/ledger/segment.h"\n','#include "reporter/ledger/segment.h"\n#include "reporter/ledger/step.h"\n'),
('	/* reporter_apart_edge() may have changed. */\n','''	/*
	 * Likewise the path of the thread out->tid, or 0: of the first one, from
	 * out->of.from to out->of.to. out->steps passes to the callee.
	 */
	int (*path)(void *arg, const struct abi_key *key, bool lives,
		    struct reporter_path *out);
	/* reporter_apart_edge() may have changed. */
'''))
sub('profiler/engine_open.c',('		.timeline = engine_timeline,\n','		.timeline = engine_timeline,\n		.path = engine_path,\n'))
sub('profiler/engine_internal.h',('void engine_close_source(','''/* reporter_opts.path */
int engine_path(void *arg, const struct abi_key *key, bool lives,
		struct reporter_path *out);
void engine_close_source('''))
sub('profiler/engine.c',('int engine_loop(struct engine *e)','''int engine_path(void *arg, const struct abi_key *key, bool lives,
		struct reporter_path *out)
{
	const struct engine *e = arg;

	return waiting_path(e->waiting, key, lives, out);
}

int engine_loop(struct engine *e)'''))
sub('profiler/waiting/waiting.h',('/* Whether waiting_tick() is due','''/* As reporter_opts.path. */
int waiting_path(struct waiting *w, const struct abi_key *key, bool lives,
		 struct reporter_path *out);
/* Whether waiting_tick() is due'''))
s=open('profiler/waiting/waiting.c').read()
a=s.index("int waiting_timeline("); b=s.index("bool waiting_busy(")
s=s[:a]+'''/* What was recorded up to now is there afterwards. 0 or -errno. */
static int waiting_show(struct waiting *w, const struct abi_key *key,
			bool lives, uint64_t now)
{
	int err;

	if (!w)
		return -ENOTSUP;
	err = lives ? timeline_choose(w->timelines, key, now) : 0;
	if (err)
		return err;
	if (now - w->shown >= WAITING_SHOWN_NS && w->edge < w->end) {
		w->shown = now;
		waiting_cut(w, now);
	}
	timeline_tick(w->timelines, now);
	return 0;
}

int waiting_timeline(struct waiting *w, const struct abi_key *key, bool lives,
		     uint32_t tid, struct reporter_timeline *out)
{
	uint64_t now = clock_boottime_ns();
	int err = waiting_show(w, key, lives, now);

	if (!err)
		err = timeline_get(w->timelines, key, tid, now, out);
	out->begun = !err && out->since == now;
	return err;
}

int waiting_path(struct waiting *w, const struct abi_key *key, bool lives,
		 struct reporter_path *out)
{
	uint64_t now = clock_boottime_ns();
	int err = waiting_show(w, key, lives, now);

	out->of.to = MIN(out->of.to, now);
	if (!err)
		err = timeline_path(w->timelines, key, now, out);
	out->of.begun = !err && out->of.since == now;
	return err;
}

'''+s[b:]
open('profiler/waiting/waiting.c','w').write(s)
sub('profiler/waiting/timeline.h',('/*\n * Puts records in order','''/* Likewise the path of a thread, see why.h; 'out' has the span and the thread. */
int timeline_path(struct timelines *t, const struct abi_key *key, uint64_t now,
		   struct reporter_path *out);

/*
 * Puts records in order'''),(" * Each has a ring of records",''' * The processes of its wakers are chosen, too, while no more than TIMELINE_WAKERS of all are:
 * they make room for those of requests, and last as long as the process that they woke.
 *
 * Each has a ring of records'''),('#define TIMELINE_FIRST','#define TIMELINE_WAKERS 32\n#define TIMELINE_FIRST'))
s=open('profiler/waiting/timeline.c').read()
s=s.replace('''	uint64_t overwritten;
};''','''	uint64_t overwritten;
	bool by_waker; /* no request was for it */
};''',1)
s=s.replace('#include "profiler/waiting/timeline.h"\n','#include "profiler/waiting/timeline.h"\n#include "profiler/waiting/why.h"\n',1)
s=s.replace('''static void timeline_record(''','''static void timeline_waker(struct timelines *t, const struct timeline *woken,
			    const struct abi_segment *s);

static void timeline_record(''',1) if False else s
# move record after choose
a=s.index("static void timeline_record("); b=s.index("/* --- which processes")
rec=s[a:b]
s=s[:a]+s[b:]
rec=rec.replace('''	of->records[(of->first + of->n++) % of->cap] = *s;
}''','''	of->records[(of->first + of->n++) % of->cap] = *s;
	if (s->waker.key.tgid && s->waker.key.tgid != s->key.tgid)
		timeline_waker(t, of->asked, s);
}''')
s=s.replace('''int timeline_choose(struct timelines *t, const struct abi_key *key,
		     uint64_t now)
{
	struct timeline *of;
	int err;

	for''','''/* In place of one of a waker, the one that is over first. */
static void timeline_make_room(struct timelines *t)
{
	struct timeline *least = NULL;

	for (size_t i = 0; i < t->n; i++)
		if (t->of[i].by_waker &&
		    (!least || t->of[i].asked < least->asked))
			least = &t->of[i];
	if (least)
		timeline_end(t, least);
}

/* NULL: see timeline_choose(). */
static int timeline_add(struct timelines *t, const struct abi_key *key,
			 uint64_t now, uint64_t asked, bool by_waker)
{
	struct timeline *of;
	int err = waiting_segments_choose(t->segments, key->tgid);

	if (err)
		return err;
	of = &t->of[t->n++];
	*of = (struct timeline){
		.since = now,
		.asked = asked,
		.by_waker = by_waker,
	};
	of->key.tgid = key->tgid;
	of->key.start_boottime = key->start_boottime;
	return 0;
}

int timeline_choose(struct timelines *t, const struct abi_key *key,
		     uint64_t now)
{
	struct timeline *of;

	for''',1).replace("/* NULL: see timeline_choose(). */\n","")
a=s.index("		if (timeline_is(of, key))\n			return 0;")
s=s.replace("		if (timeline_is(of, key))\n			return 0;","		if (timeline_is(of, key)) {\n			of->by_waker = false;\n			return 0;\n		}",1)
a=s.index("	if (t->n == ABI_CHOSEN_MAX)\n		return -E2BIG;"); b=s.index("void timeline_tick(")
s=s[:a]+'''	if (t->n == ABI_CHOSEN_MAX)
		timeline_make_room(t);
	return t->n == ABI_CHOSEN_MAX ? -E2BIG
				      : timeline_add(t, key, now, now, false);
}

/* The process of a waker is recorded as long as that of the thread that was woken. */
static void timeline_waker(struct timelines *t, uint64_t asked,
			    const struct abi_segment *s)
{
	struct timeline *of;
	size_t wakers = 0;

	for (size_t i = 0; i < t->n; i++) {
		of = &t->of[i];
		wakers += of->by_waker;
		if (of->key.tgid != s->waker.key.tgid)
			continue;
		if (of->by_waker && timeline_is(of, &s->waker.key))
			of->asked = MAX(of->asked, asked);
		return;
	}
	if (wakers < TIMELINE_WAKERS && t->n < ABI_CHOSEN_MAX)
		timeline_add(t, &s->waker.key, s->end, asked, true);
}

'''+rec+s[b:]
# joined copy shared by get and path
s=s.replace('''/* --- the object''','''/* --- paths --------------------------------------------------------------------------------- */

/* The segments of the processes that a path has come to, by thread. */
struct timeline_paths {
	struct timelines *t;
	struct {
		const struct timeline *of;
		struct reporter_segment *segments;
		size_t n;
	} read[ABI_CHOSEN_MAX];
	size_t n;
	bool failed;
};

static size_t timeline_copy(const struct timeline *of,
			    struct reporter_segment **out)
{
	*out = calloc(MAX(of->n, 1), sizeof(**out));
	if (!*out)
		return 0;
	for (size_t i = 0; i < of->n; i++)
		(*out)[i].of = of->records[(of->first + i) % of->cap];
	return timeline_join(*out, of->n);
}

/* Number of the process in p->read; p->n: it is not recorded. */
static size_t timeline_paths_read(struct timeline_paths *p,
				  const struct abi_key *key)
{
	const struct timeline *of;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (timeline_is(p->read[i].of, key))
			return i;
	of = timeline_find(p->t, key);
	if (!of)
		return p->n;
	p->read[i].of = of;
	p->read[i].n = timeline_copy(of, &p->read[i].segments);
	p->failed |= !p->read[i].segments;
	p->n++;
	return i;
}

/* Of struct why_opts. */
static const struct reporter_segment *
timeline_paths_find(void *arg, const struct abi_key *key, uint32_t tid,
		    uint64_t time, uint64_t *until)
{
	struct timeline_paths *p = arg;
	size_t i = timeline_paths_read(p, key), from = 0, to, mid;
	const struct reporter_segment *s;

	*until = 0;
	if (i == p->n)
		return NULL;
	s = p->read[i].segments;
	/* The first that is behind it. */
	for (to = p->read[i].n; from < to;) {
		mid = from + (to - from) / 2;
		if (s[mid].of.tid < tid ||
		    (s[mid].of.tid == tid && s[mid].of.begin < time))
			from = mid + 1;
		else
			to = mid;
	}
	if (!from || s[from - 1].of.tid != tid)
		return NULL;
	if (s[from - 1].of.end >= time)
		return &s[from - 1];
	*until = s[from - 1].of.end;
	return NULL;
}

int timeline_path(struct timelines *t, const struct abi_key *key, uint64_t now,
		   struct reporter_path *out)
{
	struct timeline *of = timeline_find(t, key);
	struct timeline_paths p = { .t = t };
	const struct why_opts opts = { .find = timeline_paths_find,
				       .arg = &p };

	if (!of)
		return -ESRCH;
	of->asked = now;
	timeline_about(t, of, &out->of);
	out->tid = out->tid ?: of->key.tgid;
	out->steps = why_path(&opts, &of->key, out->tid, out->of.from,
			      MAX(out->of.from, out->of.to), &out->n);
	for (size_t i = 0; i < p.n; i++)
		free(p.read[i].segments);
	if (out->steps && !p.failed)
		return 0;
	free(out->steps);
	out->steps = NULL;
	return -ENOMEM;
}

/* --- the object''',1)
a=s.index("	waiting_segments_counts(t->segments, of->key.tgid, &counts);\n	out->key"); b=s.index("	out->segments = malloc(")
s=s[:a]+"	timeline_about(t, of, out);\n"+s[b:]
s=s.replace("	struct abi_chosen counts;\n	size_t n = 0;","	size_t n = 0;",1)
s=s.replace("int timeline_get(struct timelines *t,",'''static void timeline_about(const struct timelines *t, const struct timeline *of,
			   struct reporter_timeline *out)
{
	struct abi_chosen counts;

	waiting_segments_counts(t->segments, of->key.tgid, &counts);
	out->key = of->key;
	out->since = of->since;
	out->lost_rate = counts.lost_rate;
	out->lost_ring = counts.lost_ring;
	out->lost_memory = of->overwritten;
}

int timeline_get(struct timelines *t,''',1)
open('profiler/waiting/timeline.c','w').write(s)
s=open('reporter/http/http_timeline.c').read()
s=s.replace('''struct http_timeline {
	struct reporter_timeline t;
	uint32_t tid;
	size_t at; /* the next segment */
	int64_t wall;
};''','''struct http_timeline {
	bool is_path;
	struct reporter_timeline t;
	uint32_t tid;
	struct reporter_path path;
	size_t at; /* the next segment, or step */
	int64_t wall;
};''')
s=s.replace('''/* 0 or the result of an error. */
static int timeline_args(''','''static void timeline_more_steps(struct http_request *req, unsigned int slice)
{
	struct http_timeline *t = req->timeline;
	size_t piece = http_piece(slice);

	if (!t->wall) {
		t->wall = line_wall();
		ledger_path(&t->path, &req->lines);
	}
	while (t->at < t->path.n && req->lines.len < piece &&
	       !req->lines.failed)
		ledger_step(&t->path.steps[t->at++], req->http->r->opts.pm,
			    t->wall, &req->lines);
}

/* Of a parameter; 0: it is missing. -EINVAL: an error was answered. */
static int timeline_moment(struct http_request *req, const char *key,
			   uint64_t *out, enum MHD_Result *res)
{
	const char *text = http_arg(req, key);
	int64_t offset = clock_wall_offset_ns(), at;
	int64_t now = (int64_t)clock_boottime_ns() + offset;

	if (!text)
		return 0;
	if (reporter_moment_parse(text, now, false, &at)) {
		*res = http_bad_parameter(req, -EINVAL, key, text,
					  "a time (10s, @seconds, RFC 3339)");
		return -EINVAL;
	}
	*out = at > offset ? (uint64_t)(at - offset) : 0;
	return 0;
}

static int timeline_tid(struct http_request *req, uint32_t *out,
			enum MHD_Result *res)
{
	const char *tid = http_arg(req, "tid");
	unsigned long v = 0;
	char *end = NULL;

	if (tid)
		v = strtoul(tid, &end, 10);
	*out = (uint32_t)v;
	if (!tid || (*tid >= '1' && *tid <= '9' && !*end && v <= INT32_MAX))
		return 0;
	*res = http_bad_parameter(req, -EINVAL, "tid", tid,
				  "the number of a thread");
	return -EINVAL;
}

static int timeline_path_args(struct http_request *req, struct http_timeline *t,
			      enum MHD_Result *res)
{
	struct reporter_timeline *of = &t->path.of;

	of->to = clock_boottime_ns();
	of->from = of->to - MIN(of->to, TIMELINE_SPAN_NS);
	if (timeline_tid(req, &t->path.tid, res) ||
	    timeline_moment(req, "from", &of->from, res) ||
	    timeline_moment(req, "to", &of->to, res))
		return -EINVAL;
	if (of->from < of->to)
		return 0;
	*res = http_error(req, MHD_HTTP_BAD_REQUEST,
			  "to: is not after from\\n");
	return -EINVAL;
}

/* 0 or the result of an error. */
static int timeline_args(''')
a=s.index("	const char *last = http_arg(req, \"last\"), *tid"); b=s.index("	t->t.to = clock_boottime_ns();\n	t->t.from")
s=s[:a]+'''	const char *last = http_arg(req, "last");
	int64_t ns = TIMELINE_LAST_NS;

	if (t->is_path)
		return timeline_path_args(req, t, res);
	if (last && (reporter_duration_parse(last, &ns) || ns <= 0)) {
		*res = http_bad_parameter(req, -EINVAL, "last", last,
					  "a duration (30s, 5m)");
		return -EINVAL;
	}
	if (timeline_tid(req, &t->tid, res))
		return -EINVAL;
'''+s[b:]
s=s.replace("#define TIMELINE_MAX 4","#define TIMELINE_SPAN_NS (10 * CLOCK_NSEC_PER_SEC)\n#define TIMELINE_MAX 4")
a=s.index("	err = r->opts.timeline("); b=s.index("	req->more = timeline_more;")
s=s[:a]+'''	err = t->is_path ? r->opts.path(r->opts.arg, &key, lives, &t->path)
			 : r->opts.timeline(r->opts.arg, &key, lives, t->tid,
					    &t->t);
	if (err)
		return timeline_error(req, err);
	t->t.to = clock_boottime_ns();
'''+s[b:]
s=s.replace("	req->more = timeline_more;","	req->more = t->is_path ? timeline_more_steps : timeline_more;")
a=s.index("enum MHD_Result http_timeline("); b=s.index("void http_timeline_end(")
s=s[:a]+'''static enum MHD_Result timeline_begin(struct http_request *req, bool is_path)
{
	struct reporter *r = req->http->r;

	if (r->timelines >= TIMELINE_MAX ||
	    !http_may(req, HTTP_CONN_WAITING, HTTP_WAITING_USER))
		return http_busy(req, "too many timelines are being sent");
	req->timeline = calloc(1, sizeof(*req->timeline));
	if (!req->timeline)
		return http_busy(req, "out of memory");
	req->timeline->is_path = is_path;
	r->timelines++;
	return timeline_answer(req, req->timeline);
}

enum MHD_Result http_timeline(struct http_request *req)
{
	return timeline_begin(req, false);
}

enum MHD_Result http_why(struct http_request *req)
{
	return timeline_begin(req, true);
}

'''+s[b:]
s=s.replace("	free(req->timeline->t.segments);\n","	free(req->timeline->t.segments);\n	free(req->timeline->path.steps);\n")
s=s.replace(''' * request is what begins that. The answer is of one moment, and is written in slices.
''',''' * request is what begins that. The answer is of one moment, and is written in slices.
 * /api/process/ID/why: where the time of a span of one thread went, likewise.
''')
open('reporter/http/http_timeline.c','w').write(s)
sub('reporter/http/http.h',("enum MHD_Result http_timeline(struct http_request *req);","enum MHD_Result http_timeline(struct http_request *req);\nenum MHD_Result http_why(struct http_request *req);"))
sub('reporter/http/http.c',('''	{ HTTP_ROUTE("/api/process/", http_list_process''','''	{ HTTP_ROUTE("/api/process/", http_why, HTTP_NDJSON,
		     "where the time of a span of a thread went, through what "
		     "woke it (--wait)"),
	  .prefix = true, .suffix = "/why", .args = { "from", "to", "tid" } },
	{ HTTP_ROUTE("/api/process/", http_list_process'''))
