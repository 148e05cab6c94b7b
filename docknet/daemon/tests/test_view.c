// SPDX-License-Identifier: Apache-2.0
/* The flow table, against a plain search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../pipe.h"
#include "../view.h"

#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIPES 1000u

static struct pipe *make_pipe(unsigned int i)
{
	struct pipe_config config = { .name = "" };
	char text[IP_TEXT_SIZE];
	struct pipe *pipe;

	snprintf(config.name, sizeof(config.name), "p%u", i);
	snprintf(text, sizeof(text), "10.%u.%u.1", i / 256, i % 256);
	config.address[FAMILY_IPV4].present = i % 3 != 0;
	assert_int_equal(ip_parse(text, &config.address[FAMILY_IPV4].ip, NULL), 0);
	snprintf(text, sizeof(text), "fd00::%x:1", i);
	config.address[FAMILY_IPV6].present = i % 3 != 1;
	assert_int_equal(ip_parse(text, &config.address[FAMILY_IPV6].ip, NULL), 0);
	pipe = pipe_new(&config, 0);
	assert_non_null(pipe);
	return pipe;
}

static void test_finds_what_a_plain_search_finds(void **state)
{
	struct pipe *pipes[PIPES];
	struct view *view;

	(void)state;
	for (unsigned int i = 0; i < PIPES; i++)
		pipes[i] = make_pipe(i);
	assert_int_equal(view_new(pipes, PIPES, &view), 0);
	assert_int_equal(view->count, PIPES);
	for (unsigned int i = 0; i < PIPES; i++) {
		for (int f = 0; f < FAMILIES; f++) {
			const struct pipe_address *a = &pipes[i]->config.address[f];

			assert_ptr_equal(view_find(view, &a->ip), a->present ? pipes[i] : NULL);
			assert_int_equal(pipe_owns(pipes[i], &a->ip), a->present);
		}
	}
	view_free(view);
	for (unsigned int i = 0; i < PIPES; i++)
		pipe_free(pipes[i]);
}

static void test_empty(void **state)
{
	struct ip_key nobody = ip_key4("\0\0\0\0");
	struct view *view;

	(void)state;
	assert_int_equal(view_new(NULL, 0, &view), 0);
	assert_null(view_find(view, &nobody));
	view_free(view);
}

/* Views come and go with every pipe: none may stay behind in DPDK's memory. */
static void test_many_views(void **state)
{
	struct pipe *pipe = make_pipe(1);

	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct view *view;

		assert_int_equal(view_new(&pipe, 1, &view), 0);
		view_free(view);
	}
	pipe_free(pipe);
}

/* A pipe without an IPv6 address owns no IPv6 address, :: not either. */
static void test_unspecified_is_nobodys(void **state)
{
	struct pipe *pipe = make_pipe(1);
	struct ip_key unspecified = { { 0 } };

	(void)state;
	memset(&pipe->config.address[FAMILY_IPV6], 0, sizeof(pipe->config.address[FAMILY_IPV6]));
	assert_false(pipe_owns(pipe, &unspecified));
	pipe_free(pipe);
}

int main(void)
{
	const char *eal[] = { "test", "--no-huge", "--no-shconf", "-m", "32", "--no-pci", "--no-telemetry", NULL };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_what_a_plain_search_finds),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_views),
		cmocka_unit_test(test_unspecified_is_nobodys),
	};

	setenv("RUNTIME_DIRECTORY", "/tmp", 1);
	if (rte_eal_init(7, (char **)(uintptr_t)eal) < 0)
		return 1;
	rmdir("/tmp/dpdk/rte");
	rmdir("/tmp/dpdk");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
