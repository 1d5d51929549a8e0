// SPDX-License-Identifier: Apache-2.0
/* out: the table of formats, and text that is written in pieces. */
#include <errno.h>
#include <string.h>

#include "reporter/query/model.h"
#include "reporter/sink.h"

void query_flush(struct query_out *o, size_t least)
{
	o->failed |= o->text.failed;
	if (o->failed || o->text.len < least || !o->text.len)
		return;
	sink_write(o->sink, o->text.data, o->text.len);
	strbuf_reset(&o->text);
}

void query_json_string(struct query_out *o, const char *s)
{
	text_add_json_string(&o->text, s);
}

static int (*const out_formats[])(struct reporter_query *, struct sink *) = {
#define X(name, word) [REPORTER_QUERY_##name] = write_##word,
	REPORTER_QUERY_FORMATS(X)
#undef X
};

static int out_write(struct reporter_query *q, struct sink **sink, int fd,
		     enum reporter_query_format format, int compression)
{
	int err, end;

	if (format != REPORTER_QUERY_PPROF)
		compression = REPORTER_RAW;
	err = sink_new(sink, (enum reporter_format)compression, fd);
	if (err)
		return err;
	err = out_formats[format](q, *sink);
	end = sink_finish(*sink);
	return err ? err : end;
}

int reporter_query_write(struct reporter_query *q, int fd,
			 enum reporter_query_format format, int compression)
{
	struct sink *sink = NULL;
	int err = out_write(q, &sink, fd, format, compression);

	sink_free(sink);
	return err;
}

int reporter_query_data(struct reporter_query *q,
			enum reporter_query_format format, int compression,
			void **data, size_t *len)
{
	struct sink *sink = NULL;
	int err = out_write(q, &sink, -1, format, compression);

	*data = err ? NULL : sink_steal(sink, len);
	sink_free(sink);
	return err ? err : *data ? 0 : -ENOMEM;
}
