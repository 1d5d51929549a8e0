// SPDX-License-Identifier: Apache-2.0
/*
 * names: users and groups, read at the first lookup. From /etc alone: a name
 * service may block, load modules and open sockets inside the caller.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

#define LINE_MAX_BYTES 65536

static void names_free(struct quark_name_list *l)
{
	while (l->n)
		free(l->v[--l->n].name);
	free(l->v);
}

void quark_names_fini(struct quark_names *n)
{
	names_free(&n->passwd);
	names_free(&n->group);
	memset(n, 0, sizeof(*n));
}

static int names_add(struct quark_name_list *l, uint32_t id, uint32_t gid,
		     const char *name)
{
	union quark_name *e;

	if (VECTOR_ROOM(l->v, l->n, l->cap))
		return -ENOMEM;
	e = &l->v[l->n];
	e->id = id;
	e->gid = gid;
	e->name = strdup(name);
	if (!e->name)
		return -ENOMEM;
	l->n++;
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
		err = names_add(&n->passwd, pwp->pw_uid, pwp->pw_gid,
				pwp->pw_name);
	if (f)
		fclose(f);
	f = err ? NULL : fopen("/etc/group", "re");
	while (f && !err && !fgetgrent_r(f, &gr, buf, LINE_MAX_BYTES, &grp))
		err = names_add(&n->group, grp->gr_gid, 0, grp->gr_name);
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

/* NULL with errno: no entry, no queue, or the files could not be read. */
static union quark_name *names_find(struct quark_queue *q, bool group,
				    uint32_t id)
{
	const struct quark_name_list *l;
	struct quark_names *n;
	size_t i;

	if (!q->priv)
		return quark_null(EBADF);
	n = &q->priv->names;
	errno = -names_load(n);
	l = group ? &n->group : &n->passwd;
	for (i = 0; i < l->n; i++)
		if (l->v[i].id == id)
			return &l->v[i];
	return quark_null(errno ? errno : ENOENT);
}

struct quark_passwd *quark_passwd_lookup(struct quark_queue *q, uint32_t uid)
{
	union quark_name *e = names_find(q, false, uid);

	return e ? &e->passwd : NULL;
}

struct quark_group *quark_group_lookup(struct quark_queue *q, uint32_t gid)
{
	union quark_name *e = names_find(q, true, gid);

	return e ? &e->group : NULL;
}
