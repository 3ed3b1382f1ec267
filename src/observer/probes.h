/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What happens to the ids of rdma_cm that others have: seen in probes, told to
 * who observes. The definitions and the bindings come from this one file.
 */
#ifndef RPCRDMA_CM_PROBES_H
#define RPCRDMA_CM_PROBES_H

#include <linux/in6.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

/* Who has an id. */
enum rpcrdma_cm_user {
	RPCRDMA_CM_XPRTRDMA,	/* the kernel's RPC-over-RDMA client */
	RPCRDMA_CM_SVCRDMA,	/* the kernel's RPC-over-RDMA server */
	RPCRDMA_CM_UCMA,	/* a program, of whatever protocol */
};

enum rpcrdma_cm_happening {
	RPCRDMA_CM_REQUEST,	/* a peer's request has been given to a server */
	RPCRDMA_CM_ACCEPT,	/* a server accepts it; or a program its answer */
	RPCRDMA_CM_CONNECT,	/* a client asks for a connection */
	RPCRDMA_CM_RESPONSE,	/* a program has the answer, and may refuse it */
	RPCRDMA_CM_ESTABLISHED,
	RPCRDMA_CM_REJECTED,
	RPCRDMA_CM_FAILED,
	RPCRDMA_CM_DISCONNECTED,
	RPCRDMA_CM_DESTROYED,
	RPCRDMA_CM_EXISTING,	/* found: older than the probes */
};

/*
 * One thing that happened. Of a DESTROYED id nothing but @id is known, which
 * tells ids apart and must not be followed.
 */
struct rpcrdma_cm_seen {
	const void *id;
	enum rpcrdma_cm_user user;
	enum rpcrdma_cm_happening happening;
	bool connecting;	/* of what is EXISTING: it is not established yet, */
	bool opaque;		/* and its transport cannot be read */
	int result;		/* what the handler returned: 0, or the id goes */

	struct sockaddr_in6 local;	/* or a sockaddr_in, by its family */
	struct sockaddr_in6 remote;
	enum rpcrdma_cm_transport transport;
	char device[IB_DEVICE_NAME_MAX];

	u8 len;
	u8 private_data[U8_MAX];

	/* The program, where there is one and it is known: @pid is not 0. */
	pid_t pid;
	char comm[TASK_COMM_LEN];

	/* Which of its transport's connections this is; 0: not known. */
	u32 generation;
	/* What the transport goes by; 0: not known. */
	u32 inline_send;
	u32 inline_receive;
	/* Whether the server invalidates remotely; -1: not known. */
	s8 send_with_invalidate;
};

/*
 * Called in atomic context with what must be copied, and with what
 * rpcrdma_cm_probes_register() was given.
 */
typedef void (*rpcrdma_cm_seen_fn)(void *data, const struct rpcrdma_cm_seen *seen);

int rpcrdma_cm_probes_register(rpcrdma_cm_seen_fn fn, void *data);
void rpcrdma_cm_probes_unregister(void);
void rpcrdma_cm_tell_existing(rpcrdma_cm_seen_fn fn, void *data);

/* Of the C files among each other. */
/* With PREEMPT_RT, spin locks sleep, which the entry of a function must not. */
#define RPCRDMA_CM_HAS_PROBES						\
	(IS_ENABLED(CONFIG_FPROBE) && IS_ENABLED(CONFIG_TRACEPOINTS) &&	\
	 IS_ENABLED(CONFIG_KALLSYMS) && !IS_ENABLED(CONFIG_PREEMPT_RT))

struct rdma_cm_id;
struct rdma_conn_param;

bool rpcrdma_cm_user_of(const struct rdma_cm_id *id, enum rpcrdma_cm_user *user);
void rpcrdma_cm_describe(struct rpcrdma_cm_seen *seen, const struct rdma_cm_id *id,
			 enum rpcrdma_cm_user user, enum rpcrdma_cm_happening happening);

int rpcrdma_cm_xprtrdma_register(void);
void rpcrdma_cm_xprtrdma_unregister(void);
int rpcrdma_cm_xprtrdma_describe(struct rpcrdma_cm_seen *seen, const struct rdma_cm_id *id);

#endif /* RPCRDMA_CM_PROBES_H */
