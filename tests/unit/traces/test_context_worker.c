// SPDX-License-Identifier: Apache-2.0
/* Contexts of processes go to the sandboxed worker, which this program is, too. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "symbolize/symbolize.h"
#include "tests/unit/traces/context.h"

static char self[PATH_MAX];

struct fixture {
	uv_loop_t loop;
	struct symbolizer *s;
	int answers, err;
	struct symbolizer_context c;
};

static void on_context(void *arg, int err, const struct symbolizer_context *c)
{
	struct fixture *fx = arg;

	assert_true((err == 0) == (c != NULL));
	fx->answers++;
	fx->err = err;
	if (c)
		fx->c = *c;
}

static void begin(struct fixture *fx)
{
	const struct symbolizer_opts opts = {
		.loop = &fx->loop,
		.worker = self,
		.opener = self,
	};

	memset(fx, 0, sizeof(*fx));
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	assert_int_equal(symbolizer_new(&fx->s, &opts), 0);
}

static void end(struct fixture *fx)
{
	symbolizer_free(fx->s);
	uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
}

static int ask(struct fixture *fx, const void *payload, size_t len)
{
	int before = fx->answers;

	assert_int_equal(symbolizer_context(fx->s, payload, len, 1000,
					    on_context, fx),
			 0);
	assert_int_equal(fx->answers, before); /* never from inside */
	while (fx->answers == before)
		uv_run(&fx->loop, UV_RUN_ONCE);
	return fx->err;
}

static size_t message(uint8_t *to, const char *service)
{
	static struct context_message resource, m;

	resource.len = m.len = 0;
	context_attribute(&resource, "service.name", service);
	context_bytes(&m, 1, resource.b, resource.len);
	memcpy(to, m.b, m.len);
	return m.len;
}

static void a_worker_reads_contexts(void **state)
{
	uint8_t buf[256];
	struct fixture fx;

	begin(&fx);
	assert_int_equal(ask(&fx, buf, message(buf, "checkout")), 0);
	assert_string_equal(fx.c.service, "checkout");
	assert_string_equal(fx.c.instance, "");
	assert_int_equal(ask(&fx, buf, message(buf, "bad\xff")), 0);
	assert_string_equal(fx.c.service, "");
	/* Invalid; the next is read all the same. */
	assert_int_equal(ask(&fx, "\x0a\xff", 2), -EINVAL);
	assert_int_equal(ask(&fx, buf, 0), 0);
	assert_int_equal(ask(&fx, buf, message(buf, "cart")), 0);
	assert_string_equal(fx.c.service, "cart");
	end(&fx);
}

static void a_context_has_a_limit(void **state)
{
	static uint8_t large[SYMBOLIZER_CONTEXT_MAX + 1];
	struct fixture fx;

	begin(&fx);
	assert_int_equal(symbolizer_context(fx.s, large, sizeof(large), 1000,
					    on_context, &fx),
			 -EFBIG);
	/* Attributes without a key, of two bytes each. */
	for (size_t i = 4; i < sizeof(large) - 1; i += 2)
		large[i] = 0x0a;
	memcpy(large, "\x0a\xfc\xff\x03", 4);
	assert_int_equal(ask(&fx, large, sizeof(large) - 1), -E2BIG);
	end(&fx);
}

static void the_end_answers_what_is_owed(void **state)
{
	uint8_t buf[256];
	size_t len = message(buf, "checkout");
	struct fixture fx;

	begin(&fx);
	for (int i = 0; i < 10; i++)
		assert_int_equal(symbolizer_context(fx.s, buf, len, 1000,
						    on_context, &fx),
				 0);
	end(&fx);
	assert_int_equal(fx.answers, 10);
	assert_int_equal(fx.err, -ECANCELED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_reads_contexts),
		cmocka_unit_test(a_context_has_a_limit),
		cmocka_unit_test(the_end_answers_what_is_owed),
	};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	self[n > 0 ? n : 0] = '\0';
	return cmocka_run_group_tests(tests, NULL, NULL);
}
