// SPDX-License-Identifier: Apache-2.0
/*
 * names: users and groups, read once, when first asked for. From /etc alone: a
 * name service may block, load modules and open sockets inside the caller.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

#define LINE_MAX_BYTES 65536

void quark_names_fini(struct quark_names *n)
{
	size_t i;

	for (i = 0; i < n->n_passwd; i++)
		free(n->passwd[i].name);
	for (i = 0; i < n->n_group; i++)
		free(n->group[i].name);
	free(n->passwd);
	free(n->group);
	memset(n, 0, sizeof(*n));
}

static int add_passwd(struct quark_names *n, const struct passwd *pw)
{
	struct quark_passwd *p;

	p = realloc(n->passwd, (n->n_passwd + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	n->passwd = p;
	p += n->n_passwd;
	p->uid = pw->pw_uid;
	p->gid = pw->pw_gid;
	p->name = strdup(pw->pw_name);
	if (!p->name)
		return -ENOMEM;
	n->n_passwd++;
	return 0;
}

static int add_group(struct quark_names *n, const struct group *gr)
{
	struct quark_group *p;

	p = realloc(n->group, (n->n_group + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	n->group = p;
	p += n->n_group;
	p->gid = gr->gr_gid;
	p->pad = 0;
	p->name = strdup(gr->gr_name);
	if (!p->name)
		return -ENOMEM;
	n->n_group++;
	return 0;
}

static int read_files(struct quark_names *n, char *buf)
{
	struct passwd pw, *pwp;
	struct group gr, *grp;
	int err = 0;
	FILE *f;

	f = fopen("/etc/passwd", "re");
	while (f && !err && !fgetpwent_r(f, &pw, buf, LINE_MAX_BYTES, &pwp))
		err = add_passwd(n, pwp);
	if (f)
		fclose(f);
	f = err ? NULL : fopen("/etc/group", "re");
	while (f && !err && !fgetgrent_r(f, &gr, buf, LINE_MAX_BYTES, &grp))
		err = add_group(n, grp);
	if (f)
		fclose(f);
	return err;
}

static int names_load(struct quark_names *n)
{
	char *buf;
	int err;

	if (n->loaded)
		return 0;
	buf = malloc(LINE_MAX_BYTES);
	if (!buf)
		return -ENOMEM;
	err = read_files(n, buf);
	free(buf);
	if (err)
		quark_names_fini(n);
	else
		n->loaded = true;
	return err;
}

/* NULL: the queue is not open. errno says whether all of it could be read. */
static const struct quark_names *names_of(struct quark_queue *q)
{
	if (!q->priv) {
		errno = EBADF;
		return NULL;
	}
	errno = -names_load(&q->priv->names);
	return &q->priv->names;
}

struct quark_passwd *quark_passwd_lookup(struct quark_queue *q, uint32_t uid)
{
	const struct quark_names *n = names_of(q);
	size_t i;

	for (i = 0; n && i < n->n_passwd; i++)
		if (n->passwd[i].uid == uid)
			return &n->passwd[i];
	if (!errno)
		errno = ENOENT;
	return NULL;
}

struct quark_group *quark_group_lookup(struct quark_queue *q, uint32_t gid)
{
	const struct quark_names *n = names_of(q);
	size_t i;

	for (i = 0; n && i < n->n_group; i++)
		if (n->group[i].gid == gid)
			return &n->group[i];
	if (!errno)
		errno = ENOENT;
	return NULL;
}
