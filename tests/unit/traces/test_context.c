// SPDX-License-Identifier: Apache-2.0
/* What a process publishes about itself: which of it is read, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/context/context.h"

/* --- a writer --------------------------------------------------------------- */

struct msg {
	uint8_t b[1 << 16];
	size_t len;
};

static void put_varint(struct msg *m, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		m->b[m->len++] = (uint8_t)(v | 0x80);
	m->b[m->len++] = (uint8_t)v;
}

static void put_bytes(struct msg *m, unsigned int field, const void *p,
		      size_t len)
{
	put_varint(m, field << 3 | 2);
	put_varint(m, len);
	memcpy(m->b + m->len, p, len);
	m->len += len;
}

static void put_number(struct msg *m, unsigned int field, uint64_t v)
{
	put_varint(m, field << 3);
	put_varint(m, v);
}

static void put_attribute(struct msg *resource, const char *key,
			  const struct msg *value)
{
	static struct msg kv;

	kv.len = 0;
	put_bytes(&kv, 1, key, strlen(key));
	put_bytes(&kv, 2, value->b, value->len);
	put_bytes(resource, 1, kv.b, kv.len);
}

static void put_string(struct msg *resource, const char *key, const char *s)
{
	static struct msg value;

	value.len = 0;
	put_bytes(&value, 1, s, strlen(s));
	put_attribute(resource, key, &value);
}

static struct symbolizer_context got;

/* The resource, between fields that are of no interest. */
static int parse(const struct msg *resource)
{
	static struct msg m;

	m.len = 0;
	put_number(&m, 9, 77);
	put_bytes(&m, 1, resource->b, resource->len);
	put_bytes(&m, 2, "\x0a\x01x", 3);
	return symbolizer_context_parse(m.b, m.len, &got);
}

static struct msg resource;

static int setup(void **state)
{
	resource.len = 0;
	return 0;
}

/* --- names ------------------------------------------------------------------ */

static void the_names_of_a_resource_are_read(void **state)
{
	put_string(&resource, "telemetry.sdk.name", "opentelemetry");
	put_string(&resource, "service.name", "checkout");
	put_string(&resource, "service.instance.id", "7f-3e");
	put_string(&resource, "deployment.environment.name",
		   "pr\xc3\xb6"
		   "d");
	put_string(&resource, "service.name.x", "other");
	assert_int_equal(parse(&resource), 0);
	assert_string_equal(got.service, "checkout");
	assert_string_equal(got.instance, "7f-3e");
	assert_string_equal(got.environment, "pr\xc3\xb6"
					     "d");
}

static void of_a_name_that_comes_again_the_last_one_counts(void **state)
{
	put_string(&resource, "service.name", "a longer one");
	put_string(&resource, "service.name", "two");
	assert_int_equal(parse(&resource), 0);
	assert_string_equal(got.service, "two");
}

static void a_value_that_is_no_string_is_no_name(void **state)
{
	static struct msg value;

	put_string(&resource, "service.instance.id", "7");
	value.len = 0;
	put_number(&value, 3, 5);
	put_attribute(&resource, "service.name", &value);
	assert_int_equal(parse(&resource), 0);
	assert_string_equal(got.service, "");
	assert_string_equal(got.instance, "7");
}

static void a_name_that_is_no_text_is_left_out(void **state)
{
	static const char *const bad[] = {
		"",
		"a\xff",
		"\xc0\xaf", /* overlong */
		"\xed\xa0\x80", /* a surrogate */
		"\xf4\x90\x80\x80", /* beyond U+10FFFF */
		"a\x1b[2J",
		"a\nb",
		"\xc2\x9b", /* C1 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		resource.len = 0;
		put_string(&resource, "service.name", bad[i]);
		put_string(&resource, "service.instance.id", "7");
		assert_int_equal(parse(&resource), 0);
		assert_string_equal(got.service, "");
		assert_string_equal(got.instance, "7");
	}
}

static void a_name_has_128_bytes_at_most(void **state)
{
	char s[SYMBOLIZER_CONTEXT_NAME_MAX + 2];

	memset(s, 'x', sizeof(s));
	s[SYMBOLIZER_CONTEXT_NAME_MAX + 1] = '\0';
	put_string(&resource, "service.name", s);
	assert_int_equal(parse(&resource), 0);
	assert_string_equal(got.service, "");
	s[SYMBOLIZER_CONTEXT_NAME_MAX] = '\0';
	put_string(&resource, "service.name", s);
	assert_int_equal(parse(&resource), 0);
	assert_string_equal(got.service, s);
}

/* --- bounds ----------------------------------------------------------------- */

static void many_attributes_are_refused(void **state)
{
	for (int i = 0; i < SYMBOLIZER_CONTEXT_ATTRIBUTES - 1; i++)
		put_string(&resource, "k", "v");
	put_string(&resource, "service.name", "last");
	assert_int_equal(parse(&resource), 0);
	assert_string_equal(got.service, "last");
	put_string(&resource, "k", "v");
	assert_int_equal(parse(&resource), -E2BIG);
}

static void each_cut_of_a_message_is_refused_or_whole(void **state)
{
	static struct msg m;

	put_string(&resource, "service.name", "checkout");
	m.len = 0;
	put_bytes(&m, 1, resource.b, resource.len);
	for (size_t n = 1; n < m.len; n++)
		assert_int_equal(symbolizer_context_parse(m.b, n, &got),
				 -EINVAL);
	assert_int_equal(symbolizer_context_parse(m.b, 0, &got), 0);
}

static void what_is_no_protobuf_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\x00", 1 }, /* field 0 */
		{ "\x0b\x0c", 2 }, /* a group */
		{ "\x0f", 1 }, /* wire type 7 */
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
		{ "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11 },
		{ "\x09"
		  "1234567",
		  8 }, /* 64 bits, one byte missing */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(
			symbolizer_context_parse((const uint8_t *)bad[i].bytes,
						 bad[i].len, &got),
			-EINVAL);
}

/* --- the header ------------------------------------------------------------- */

struct head {
	char magic[8];
	uint32_t version, size;
	uint64_t published_ns, payload;
};

static const struct head good = { "OTEL_CTX", 2, 300, 17, 0x7f0000001000 };

static int header(const struct head *h)
{
	struct symbolizer_context_header out;

	return symbolizer_context_header(h, sizeof(*h), &out);
}

static void a_header_leads_to_its_payload(void **state)
{
	struct symbolizer_context_header out;

	assert_int_equal(symbolizer_context_header(&good, sizeof(good), &out),
			 0);
	assert_int_equal(out.published_ns, 17);
	assert_int_equal(out.payload, 0x7f0000001000);
	assert_int_equal(out.size, 300);
}

static void other_headers_are_refused(void **state)
{
	struct symbolizer_context_header out;
	struct head h = good;

	h.magic[7] = 'Y';
	assert_int_equal(header(&h), -EINVAL);
	h = good;
	h.version = 1;
	assert_int_equal(header(&h), -EINVAL);
	h = good;
	h.published_ns = 0;
	assert_int_equal(header(&h), -EAGAIN);
	h = good;
	h.size = SYMBOLIZER_CONTEXT_MAX;
	assert_int_equal(header(&h), 0);
	h.size++;
	assert_int_equal(header(&h), -EFBIG);
	assert_int_equal(symbolizer_context_header(&good, sizeof(good) - 1,
						   &out),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_names_of_a_resource_are_read, setup),
		cmocka_unit_test_setup(
			of_a_name_that_comes_again_the_last_one_counts, setup),
		cmocka_unit_test_setup(a_value_that_is_no_string_is_no_name,
				       setup),
		cmocka_unit_test_setup(a_name_that_is_no_text_is_left_out,
				       setup),
		cmocka_unit_test_setup(a_name_has_128_bytes_at_most, setup),
		cmocka_unit_test_setup(many_attributes_are_refused, setup),
		cmocka_unit_test_setup(
			each_cut_of_a_message_is_refused_or_whole, setup),
		cmocka_unit_test_setup(what_is_no_protobuf_is_refused, setup),
		cmocka_unit_test(a_header_leads_to_its_payload),
		cmocka_unit_test(other_headers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
