/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring.c - one ring: around the wrap of its indices, full, empty, with a peer that lies, and with two threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "ring.h"

#define ENTRIES 8u

struct both {
	struct dp_ring_shared shared;
	struct dp_ring producer, consumer;
	_Atomic uint32_t entry[ENTRIES];
};

/* start makes both ends of a ring whose indices are about to wrap. */
static void start(struct both *b, uint32_t index)
{
	atomic_init(&b->shared.producer, index);
	atomic_init(&b->shared.consumer, index);
	dp_ring_init(&b->producer, &b->shared, ENTRIES, index, index);
	dp_ring_init(&b->consumer, &b->shared, ENTRIES, index, index);
}

static void put(struct both *b, uint32_t value)
{
	atomic_store_explicit(&b->entry[dp_ring_at(&b->producer, 0)], value, memory_order_relaxed);
	dp_ring_submit(&b->producer, 1);
}

static uint32_t get(struct both *b)
{
	uint32_t value = atomic_load_explicit(&b->entry[dp_ring_at(&b->consumer, 0)], memory_order_relaxed);

	dp_ring_release(&b->consumer, 1);
	return value;
}

static void test_order_around_wrap(void **state)
{
	struct both b;

	(void)state;
	start(&b, UINT32_MAX - 20);
	for (uint32_t i = 0; i < 100; i += 3) {
		assert_int_equal(dp_ring_reserve(&b.producer, 3), 3);
		for (uint32_t k = 0; k < 3; k++)
			put(&b, i + k);
		assert_int_equal(dp_ring_peek(&b.consumer, 100), 3);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(get(&b), i + k);
	}
	assert_int_equal(b.producer.bad + b.consumer.bad, 0);
}

static void test_full_and_empty(void **state)
{
	struct both b;

	(void)state;
	start(&b, UINT32_MAX - 3);
	assert_int_equal(dp_ring_peek(&b.consumer, 1), 0);
	assert_int_equal(dp_ring_reserve(&b.producer, 100), ENTRIES);
	for (uint32_t i = 0; i < ENTRIES; i++)
		put(&b, i);
	assert_int_equal(dp_ring_reserve(&b.producer, 1), 0);
	assert_int_equal(dp_ring_in_use(&b.producer), ENTRIES);
	assert_int_equal(dp_ring_peek(&b.consumer, 100), ENTRIES);
	assert_int_equal(get(&b), 0);
	assert_int_equal(dp_ring_reserve(&b.producer, 100), 1);
	assert_int_equal(dp_ring_in_use(&b.producer), ENTRIES - 1);
}

/* A producer index that is impossible is "nothing there", however often it is looked at. */
static void test_lying_producer(void **state)
{
	static const uint32_t lies[] = { ENTRIES + 1, 1u << 31, UINT32_MAX, 0x80000001 };
	struct both b;

	(void)state;
	for (unsigned i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		start(&b, 100);
		atomic_store(&b.shared.producer, 100 + lies[i]);
		assert_int_equal(dp_ring_peek(&b.consumer, 4), 0);
		assert_int_equal(dp_ring_peek(&b.consumer, 4), 0);
		assert_int_equal(b.consumer.bad, 2);
		atomic_store(&b.shared.producer, 102); /* honest again */
		assert_int_equal(dp_ring_peek(&b.consumer, 4), 2);
	}
}

static void test_lying_consumer(void **state)
{
	static const uint32_t lies[] = { 1, ENTRIES, 1u << 31, 0x80000001 };
	struct both b;

	(void)state;
	for (unsigned i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		start(&b, 100);
		for (uint32_t k = 0; k < ENTRIES; k++)
			put(&b, k);
		atomic_store(&b.shared.consumer, b.producer.own + lies[i]); /* ahead of what was submitted */
		assert_int_equal(dp_ring_reserve(&b.producer, 1), 0);
		assert_int_equal(b.producer.bad, 1);
	}
}

/* The owner of an index never reads it back: a peer cannot move it. */
static void test_own_index_overwritten(void **state)
{
	struct both b;

	(void)state;
	start(&b, 7);
	put(&b, 1);
	atomic_store(&b.shared.producer, 4711);
	assert_int_equal(dp_ring_reserve(&b.producer, ENTRIES), ENTRIES - 1);
	put(&b, 2);
	assert_int_equal(atomic_load(&b.shared.producer), 9);
}

#define PASSED 200000u

static void *produce(void *argument)
{
	struct both *b = argument;

	for (uint32_t i = 0; i < PASSED;) {
		uint32_t n = dp_ring_reserve(&b->producer, 5);

		for (uint32_t k = 0; k < n; k++) {
			if (i < PASSED)
				put(b, i++);
		}
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

static void test_two_threads(void **state)
{
	static struct both b;
	pthread_t thread;

	(void)state;
	start(&b, UINT32_MAX - PASSED / 2);
	assert_int_equal(pthread_create(&thread, NULL, produce, &b), 0);
	for (uint32_t i = 0; i < PASSED;) {
		uint32_t n = dp_ring_peek(&b.consumer, 3);

		for (; n > 0; n--)
			assert_int_equal(get(&b), i++);
		if (n == 0)
			sched_yield();
	}
	pthread_join(thread, NULL);
}

static void test_descriptor_words(void **state)
{
	const struct dp_desc in = { .offset = 0x11223344, .length = 0x5566, .flags = DP_DESC_MORE, .gso_size = 1448 };
	struct dp_slot slot;
	struct dp_desc out;

	(void)state;
	dp_slot_write(&slot, &in);
	assert_int_equal(atomic_load(&slot.word[0]), 0x0001556611223344ull);
	assert_int_equal(atomic_load(&slot.word[1]), 1448);
	out = dp_slot_read(&slot);
	assert_memory_equal(&in, &out, sizeof in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_around_wrap),     cmocka_unit_test(test_full_and_empty),
		cmocka_unit_test(test_lying_producer),	      cmocka_unit_test(test_lying_consumer),
		cmocka_unit_test(test_own_index_overwritten), cmocka_unit_test(test_two_threads),
		cmocka_unit_test(test_descriptor_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
