// SPDX-License-Identifier: Apache-2.0
/*
 * ledger_names: names of the members of events. Where the semantic conventions of
 * OpenTelemetry have an attribute it is its name, else "profd." and profd's own. The
 * line's own members, which describe no process, have no prefix.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "reporter/ledger/ledger.h"
#include "reporter/ledger/names.h"

#define LEDGER_PREFIX "profd."

static const struct {
	const char *key, *name;
} ledger_names[] = {
	/* of the line */
	{ "id", "id" },
	{ "time", "time" },
	{ "time_boot_ns", "time_boot_ns" },
	{ "events", "events" },
	{ "from", "from" },
	{ "to", "to" },
	{ "lost", "lost" },
	{ "kinds", "kinds" },
	{ "count", "count" },
	{ "cut", "cut" },
	/* attributes */
	{ "host", "host.name" },
	{ "pid", "process.pid" },
	{ "ppid", "process.parent_pid" },
	{ "exe", "process.executable.path" },
	{ "build_id", "process.executable.build_id.gnu" },
	{ "args", "process.command_args" },
	{ "cwd", "process.working_directory" },
	{ "uid", "process.real_user.id" },
	{ "session", "process.session_leader.pid" },
	{ "group", "process.group_leader.pid" },
	{ "start", "process.creation.time" },
	{ "exit", "process.exit.time" },
	{ "exit_code", "process.exit.code" },
	{ "cgroup", "process.linux.cgroup" },
	{ "container", "container.id" },
	{ "engine", "container.runtime.name" },
	{ "pod", "k8s.pod.uid" },
	{ "service", "service.name" },
	{ "service_instance", "service.instance.id" },
	{ "environment", "deployment.environment.name" },
};

const char *ledger_name(const char *key, char buf[LEDGER_NAME_MAX])
{
	for (size_t i = 0; i < ARRAY_SIZE(ledger_names); i++)
		if (!strcmp(ledger_names[i].key, key))
			return ledger_names[i].name;
	snprintf(buf, LEDGER_NAME_MAX, LEDGER_PREFIX "%s", key);
	return buf;
}

static const char *ledger_key(const char *name)
{
	size_t len = strlen(LEDGER_PREFIX);

	for (size_t i = 0; i < ARRAY_SIZE(ledger_names); i++)
		if (!strcmp(ledger_names[i].name, name))
			return ledger_names[i].key;
	return strncmp(name, LEDGER_PREFIX, len) ? name : name + len;
}

/* The object, or each object of the array. */
static json_t *ledger_plain_value(json_t *v)
{
	json_t *list;

	if (json_is_object(v))
		return reporter_event_plain(v);
	if (!json_is_object(json_array_get(v, 0)))
		return json_incref(v);
	list = json_array();
	for (size_t i = 0; i < json_array_size(v); i++)
		json_array_append_new(
			list, reporter_event_plain(json_array_get(v, i)));
	return list;
}

json_t *reporter_event_plain(json_t *event)
{
	json_t *out = json_object(), *v;
	const char *name;

	json_object_foreach(event, name, v) json_object_set_new_nocheck(
		out, ledger_key(name), ledger_plain_value(v));
	return out;
}

int ledger_event_of(json_t *row, struct strbuf *sb)
{
	char buf[LEDGER_NAME_MAX];
	json_t *out = json_object(), *v;
	const char *key;
	int err = 0;

	json_object_foreach(row, key, v)
	{
		if (!json_is_null(v) &&
		    json_object_set_nocheck(out, ledger_name(key, buf), v))
			err = -ENOMEM;
	}
	if (!err)
		ledger_dump(json_incref(out), sb);
	json_decref(out);
	return err;
}
