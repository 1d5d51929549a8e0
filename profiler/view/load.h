/* SPDX-License-Identifier: Apache-2.0 */
/* load: profiles of files and of a running profd, as inputs of a query. */
#ifndef PROFILER_LOAD_H
#define PROFILER_LOAD_H

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"

/* Adds a file, "-" is standard input. An exit status, after a message. */
int load_add(struct reporter_query *q, const char *path, bool base);
/*
 * Adds the files, "-" is standard input, to '*qp', a new query of 'request', to be
 * freed before it in any case. An exit status, after a message.
 */
/* When all is added. An exit status, after a message. */
int load_end(struct reporter_query *q);
int load_files(const struct reporter_request *request, char **files, size_t n,
	       struct reporter_query **qp);

struct load_get {
	const struct options *o; /* the server */
	/* Of the request; the others are set here. */
	const char *path;
	unsigned int wait_s;
	int input_fd;
	bool (*input)(void *arg);
	void *arg;
	struct strbuf body; /* set; to be freed in any case */
	char msg[768]; /* set on an error: a line */
};
/* 0; -ECANCELED by input(); another -errno, and 'msg'. */
int load_get(struct load_get *g);
/* Likewise; adds the profile of the answer. */
int load_server(struct load_get *g, const struct reporter_request *request,
		struct reporter_query **qp);

#endif /* PROFILER_LOAD_H */
