/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl: HTTP as a client, with a library that is loaded when it is used. It brings
 * some twenty others, whose linking takes half of the time of an exec of profd; most
 * processes of profd never send a request. Calls are those of <curl/curl.h>, checks of
 * their types included; libcurl_load() comes before the first.
 */
#ifndef BASE_LIBCURL_H
#define BASE_LIBCURL_H

#include <curl/curl.h>

/* Loads it once. 0, or -ENOENT with the linker's reason. Not thread-safe. */
int libcurl_load(const char **why);

#endif /* BASE_LIBCURL_H */
