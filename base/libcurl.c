// SPDX-License-Identifier: Apache-2.0
/*
 * libcurl: see base/libcurl.h. Each function of the library that profd calls is here by
 * its own name and calls the loaded one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/base.h"
#include "base/libcurl.h"

/* The version of its interface, the same since 2006. */
#define LIBCURL_FILE "libcurl.so.4"

/* NAME, type, parameters, arguments. Two others, below, take a variable argument. */
#define LIBCURL_CALLS(CALL)                                                   \
	CALL(curl_global_init, CURLcode, (long flags), (flags))               \
	CALL(curl_free, void, (void *p), (p))                                 \
	CALL(curl_slist_append, struct curl_slist *,                          \
	     (struct curl_slist * list, const char *text), (list, text))      \
	CALL(curl_slist_free_all, void, (struct curl_slist * list), (list))   \
	CALL(curl_easy_init, CURL *, (void), ())                              \
	CALL(curl_easy_reset, void, (CURL * c), (c))                          \
	CALL(curl_easy_perform, CURLcode, (CURL * c), (c))                    \
	CALL(curl_easy_cleanup, void, (CURL * c), (c))                        \
	CALL(curl_easy_strerror, const char *, (CURLcode code), (code))       \
	CALL(curl_easy_escape, char *, (CURL * c, const char *text, int len), \
	     (c, text, len))                                                  \
	CALL(curl_multi_init, CURLM *, (void), ())                            \
	CALL(curl_multi_add_handle, CURLMcode, (CURLM * m, CURL * c), (m, c)) \
	CALL(curl_multi_remove_handle, CURLMcode, (CURLM * m, CURL * c),      \
	     (m, c))                                                          \
	CALL(curl_multi_perform, CURLMcode, (CURLM * m, int *running),        \
	     (m, running))                                                    \
	CALL(curl_multi_poll, CURLMcode,                                      \
	     (CURLM * m, struct curl_waitfd * fds, unsigned int n, int ms,    \
	      int *ready),                                                    \
	     (m, fds, n, ms, ready))                                          \
	CALL(curl_multi_info_read, CURLMsg *, (CURLM * m, int *left),         \
	     (m, left))                                                       \
	CALL(curl_multi_cleanup, CURLMcode, (CURLM * m), (m))

#define LIBCURL_MEMBER(name, type, params, args) __typeof__(&name) name;
static struct {
	void *library;
	LIBCURL_CALLS(LIBCURL_MEMBER)
	__typeof__(&curl_easy_getinfo) easy_getinfo;
	__typeof__(&curl_easy_setopt) easy_setopt;
} libcurl;

#define LIBCURL_OFFSET(name, type, params, args) \
	{ #name, offsetof(__typeof__(libcurl), name) },
static const struct {
	const char *name;
	size_t offset;
} libcurl_names[] = {
	LIBCURL_CALLS(LIBCURL_OFFSET){
		"curl_easy_getinfo",
		offsetof(__typeof__(libcurl), easy_getinfo) },
	{ "curl_easy_setopt", offsetof(__typeof__(libcurl), easy_setopt) },
};

int libcurl_load(const char **why)
{
	void *library, *call;

	if (libcurl.library)
		return 0;
	library = dlopen(LIBCURL_FILE, RTLD_NOW | RTLD_LOCAL);
	call = library;
	for (size_t i = 0; i < ARRAY_SIZE(libcurl_names) && call; i++) {
		call = dlsym(library, libcurl_names[i].name);
		*(void **)((char *)&libcurl + libcurl_names[i].offset) = call;
	}
	if (!call) {
		*why = dlerror();
		return -ENOENT;
	}
	libcurl.library = library;
	return 0;
}

#define LIBCURL_CALL(name, type, params, args) \
	type name params                       \
	{                                      \
		return libcurl.name args;      \
	}
LIBCURL_CALLS(LIBCURL_CALL)

/* By the names that macros, which check types, call. */
CURLcode libcurl_getinfo(CURL *c, CURLINFO info,
			 ...) __asm__("curl_easy_getinfo");
CURLcode libcurl_setopt(CURL *c, CURLoption option,
			...) __asm__("curl_easy_setopt");

/* Wherever a result is put, its place is a pointer. */
CURLcode libcurl_getinfo(CURL *c, CURLINFO info, ...)
{
	va_list ap;
	void *result;

	va_start(ap, info);
	result = va_arg(ap, void *);
	va_end(ap);
	return libcurl.easy_getinfo(c, info, result);
}

/* The number of an option has the type of its value. */
CURLcode libcurl_setopt(CURL *c, CURLoption option, ...)
{
	va_list ap;
	CURLcode code;

	va_start(ap, option);
	if (option < CURLOPTTYPE_OBJECTPOINT)
		code = libcurl.easy_setopt(c, option, va_arg(ap, long));
	else if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB)
		code = libcurl.easy_setopt(c, option, va_arg(ap, curl_off_t));
	else
		code = libcurl.easy_setopt(c, option, va_arg(ap, void *));
	va_end(ap);
	return code;
}
