/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DOCKDAEMON_OPTIONS_H
#define DOCKDAEMON_OPTIONS_H

#include "../dockpipe/wait.h"

#include <sys/types.h>

#define MASTERS_MAX    16u
#define NIC_NAME_MAX   63u
#define NIC_QUEUES_MAX 64u

enum nic_kind {
	NIC_NONE,
	NIC_AF_XDP,    /* a kernel interface, through an XDP socket */
	NIC_AF_PACKET, /* a kernel interface, through a packet socket: any MTU, slower */
	NIC_TAP,       /* a new kernel interface, at whose other end is the host's own stack */
	NIC_PCI,       /* a physical port that is bound to vfio-pci or the like */
};

struct nic_options {
	enum nic_kind kind;
	char name[NIC_NAME_MAX + 1]; /* of the interface, or the PCI address */
	unsigned int mtu;	     /* 0: what the device has */
	unsigned int queues; /* receive queues; 0: as many as the device has, for those that steer in hardware */
};

struct options {
	const char *directory;
	struct nic_options nic;
	unsigned int masters;
	int cpu[MASTERS_MAX]; /* where each master runs; -1: anywhere */
	enum dp_wait_mode wait;
	uid_t user;		 /* who the daemon is after its start; 0: root without capabilities */
	int ready_fd;		 /* where "ready" or the reason of a failed start is written; -1: nowhere */
	unsigned int memory_mib; /* for packet buffers at the NIC */
};

/* options_parse returns 0; 1: asked for help, which has been printed; -1: wrong, the reason has been printed. */
int options_parse(int argc, char **argv, struct options *options);

/* nic_options_parse reads "none" or KIND:NAME[,mtu=N][,queues=N]. Returns 0, or -EINVAL with the reason. */
int nic_options_parse(const char *text, struct nic_options *nic, const char **reason);

#endif
