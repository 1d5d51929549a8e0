// SPDX-License-Identifier: Apache-2.0
/*
 * Text of clients and users: addresses, Host, Accept-Encoding, seconds; names of
 * functions, which should be UTF-8; and files that may be profiles.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/http/http_parse.h"
#include "reporter/pprof.h"
#include "reporter/profile_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[HTTP_ID_MAX];
	struct http_address a;
	char *s = malloc(size + 1);
	struct strbuf sb = STRBUF_INIT;
	size_t len = size;
	const char *utf8;
	int seconds;

	if (!s)
		return 0;
	if (profile_check(data, size, true) &&
	    !profile_check(data, size, false))
		__builtin_trap();
	memcpy(s, data, size);
	s[size] = '\0';
	if (!http_parse_address(s, &a) && a.len > sizeof(a.any))
		__builtin_trap();
	seconds = http_parse_seconds(s);
	if (seconds == 0 || seconds > HTTP_SECONDS_MAX)
		__builtin_trap();
	if (http_accepts_zstd(s) && !strcasestr(s, "zstd"))
		__builtin_trap();
	if (http_parse_id(s, id) > (int)strlen(s) / 2)
		__builtin_trap();
	http_host_is_local(s);
	utf8 = pprof_utf8(s, &len, &sb);
	if (utf8 && (len < size || (utf8 == s && len != size)))
		__builtin_trap();
	strbuf_fini(&sb);
	free(s);
	return 0;
}
