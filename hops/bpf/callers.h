/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The system calls of the container's threads: when a packet was asked to be sent, and when the reader had it. */
#ifndef HOPS_CALLERS_H
#define HOPS_CALLERS_H

#include <bpf/bpf_helpers.h>

#include "../../mace/bpf/tasks.h"
#include "trace.h"

struct caller {
	u64 enter_ns; /* of the call that it is in; 0 outside */
	u32 spent_ns; /* of enter_ns's program, while it was timed */
	u32 received_count;
	struct hops_delivery received[PENDING];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct caller);
} callers SEC(".maps");

static __always_inline bool in_container(const struct task_struct *task)
{
	return task->nsproxy->net_ns->net_cookie == container_cookie;
}

/* The point at which the current thread's call began. */
static __always_inline void caller_point(struct hops_trace *t)
{
	struct caller *caller = bpf_task_storage_get(&callers, bpf_get_current_task_btf(), NULL, 0);
	struct hops_point *p;

	if (!caller || !caller->enter_ns)
		return;
	p = point_add(t, 0, HOPS_SYS_ENTER | HOPS_IN_CONTAINER, caller->enter_ns);
	if (p)
		p->spent_ns = caller->spent_ns;
}

static __always_inline void caller_enters(struct task_struct *task, u64 now_ns)
{
	struct caller *caller = bpf_task_storage_get(&callers, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!caller)
		return;
	caller->enter_ns = now_ns;
	caller->received_count = 0;
	caller->spent_ns = since(now_ns);
}

/* The receiving call returns with what it has copied. */
static __always_inline void caller_returns(struct task_struct *task, u64 now_ns)
{
	struct caller *caller = bpf_task_storage_get(&callers, task, NULL, 0);
	struct hops_counters *c = counts();
	u32 i;

	if (!caller || !c)
		return;
	for (i = 0; i < PENDING; i++) {
		if (i >= caller->received_count)
			break;
		caller->received[i].exit_ns = now_ns;
		tell(c, &caller->received[i], sizeof(caller->received[i]));
	}
	caller->received_count = 0;
	caller->enter_ns = 0;
}

#endif
