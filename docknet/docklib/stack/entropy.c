/* SPDX-License-Identifier: Apache-2.0 */
/* entropy.c - the kernel's randomness in portions, and SipHash (Aumasson and Bernstein, 2012). */
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "entropy.h"

static uint64_t key[2];
static uint32_t pool[64];
static unsigned used = sizeof pool / sizeof pool[0];

/* fill never fails for long: getrandom is there since Linux 3.17; where a filter forbids it the clock must do. */
static void fill(void *to, size_t length)
{
	if (getrandom(to, length, 0) == (ssize_t)length)
		return;

	struct timespec t;
	uint8_t *bytes = to;

	clock_gettime(CLOCK_MONOTONIC, &t);
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)((uint64_t)t.tv_nsec * (2 * i + 0x9e3779b1) >> (i % 24));
}

uint32_t docknet_random(void)
{
	if (used == sizeof pool / sizeof pool[0]) {
		fill(pool, sizeof pool);
		used = 0;
	}
	return pool[used++];
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

uint64_t docknet_keyed_hash(const void *data, size_t length)
{
	const uint8_t *bytes = data;
	uint64_t word = (uint64_t)length << 56;

	if (key[0] == 0)
		fill(key, sizeof key);

	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
			  key[1] ^ 0x7465646279746573u };

	for (; length >= 8; bytes += 8, length -= 8) {
		uint64_t m;

		memcpy(&m, bytes, 8);
		v[3] ^= m;
		sip_round(v);
		sip_round(v);
		v[0] ^= m;
	}
	for (size_t i = 0; i < length; i++)
		word |= (uint64_t)bytes[i] << (8 * i);
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
