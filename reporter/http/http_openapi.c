// SPDX-License-Identifier: Apache-2.0
/*
 * http_openapi: the pages of the server as an OpenAPI 3.0 document, made of the tables
 * by which requests are answered.
 */
#include <jansson.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/query/query.h"

/* What a value has to be, as a schema; of others it is a text. */
static const struct {
	const char *key, *schema;
} openapi_schemas[] = {
	{ "after", "{\"type\":\"integer\",\"minimum\":1}" },
	{ "drop_marks", "{\"type\":\"integer\",\"enum\":[0,1]}" },
	{ "inline", "{\"type\":\"string\",\"enum\":[\"expand\"]}" },
	{ "limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":10000}" },
	{ "seconds", "{\"type\":\"number\",\"minimum\":0}" },
	{ "tid", "{\"type\":\"integer\",\"minimum\":1}" },
	{ "traces", "{\"type\":\"integer\",\"enum\":[0,1]}" },
	{ "symbols", "{\"type\":\"string\",\"enum\":[\"all\",\"known\"]}" },
};

static json_t *openapi_schema(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(openapi_schemas); i++)
		if (!strcmp(openapi_schemas[i].key, key))
			return json_loads(openapi_schemas[i].schema, 0, NULL);
	return json_pack("{s:s}", "type", "string");
}

/* Terms may be repeated. */
static json_t *openapi_term(const char *prefix, const char *key)
{
	return json_pack("{s:s+, s:s, s:b, s:{s:s, s:{s:s}}}", "name", prefix,
			 key, "in", "query", "explode", true, "schema", "type",
			 "array", "items", "type", "string");
}

static json_t *openapi_parameters(const struct http_route *r)
{
	json_t *list = json_array();
	const char *key;
	size_t i;

	if (r->prefix)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:{s:s}}", "name",
					"id", "in", "path", "required", true,
					"schema", "type", "string"));
	for (i = 0; (key = r->key	       ? r->key(i)
			   : i < HTTP_ARGS_MAX ? r->args[i]
					       : NULL);
	     i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:o}", "name", key,
						"in", "query", "schema",
						openapi_schema(key)));
	for (i = 0; r->terms && (key = reporter_query_terms_key(i)); i++) {
		json_array_append_new(list, openapi_term("", key));
		json_array_append_new(list, openapi_term("not-", key));
	}
	return list;
}

static json_t *openapi_responses(const struct http_route *r)
{
	static const char *const errors[][2] = {
		{ "400", "a parameter is wrong; the text names it" },
		{ "401", "a token is needed" },
		{ "403", "the Host is not this host's" },
		{ "404", "there is no such thing" },
		{ "413", "the answer would be too large" },
		{ "503", "busy: to be tried again" },
	};
	json_t *out = json_pack("{s:{s:s, s:{s:{}}}}", "200", "description",
				r->what, "content", r->type);

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		json_object_set_new(out, errors[i][0],
				    json_pack("{s:s, s:{s:{}}}", "description",
					      errors[i][1], "content",
					      HTTP_TEXT));
	return out;
}

static void openapi_path(json_t *paths, const struct http_route *r)
{
	char path[64];

	snprintf(path, sizeof(path), "%s%s%s", r->path, r->prefix ? "{id}" : "",
		 r->suffix ?: "");
	json_object_set_new(paths, path,
			    json_pack("{s:{s:s, s:o, s:o}}", "get", "summary",
				      r->what, "parameters",
				      openapi_parameters(r), "responses",
				      openapi_responses(r)));
}

enum MHD_Result http_openapi(struct http_request *req)
{
	json_t *paths = json_object(), *all;
	const struct http_route *r;
	size_t i, n;
	char *text;

	r = http_routes_get(&n);
	for (i = 0; i < n; i++)
		openapi_path(paths, &r[i]);
	all = json_pack("{s:s, s:{s:s, s:s}, s:o}", "openapi", "3.0.3", "info",
			"title", "profd", "version", PROFD_VERSION, "paths",
			paths);
	text = json_dumps(all, JSON_INDENT(1));
	json_decref(all);
	return http_send_text(req, text, text ? strlen(text) : 0, HTTP_JSON);
}
