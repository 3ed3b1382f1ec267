/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events of the ids of rdma_cm that others own: probes see them, and report
 * them to the observer. The definitions and the bindings come from this one file.
 */
#ifndef RPCRDMA_CM_PROBES_H
#define RPCRDMA_CM_PROBES_H

#include <linux/in6.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

struct rdma_cm_id;

/* Who has an id. */
enum rpcrdma_cm_user {
	RPCRDMA_CM_XPRTRDMA,	/* the kernel's RPC-over-RDMA client */
	RPCRDMA_CM_SVCRDMA,	/* the kernel's RPC-over-RDMA server */
	RPCRDMA_CM_UCMA,	/* a program, of whatever protocol */
};

enum rpcrdma_cm_event_kind {
	RPCRDMA_CM_REQUEST,	/* a peer's request has been given to a server */
	RPCRDMA_CM_ACCEPT,	/* a server accepts it; or a program its answer */
	RPCRDMA_CM_CONNECT,	/* a client asks for a connection */
	RPCRDMA_CM_RESPONSE,	/* a program has the answer, and may refuse it */
	RPCRDMA_CM_ESTABLISHED,
	RPCRDMA_CM_REJECTED,
	RPCRDMA_CM_FAILED,
	RPCRDMA_CM_DISCONNECT,	/* this end disconnects; no mutex is held */
	RPCRDMA_CM_DISCONNECTED,
	RPCRDMA_CM_DEVICE_REMOVED,
	RPCRDMA_CM_DESTROYED,
	RPCRDMA_CM_EXISTING,	/* found: older than the probes */
};

/*
 * One event of an id. Nothing is copied: it is valid during the call that
 * reports it.
 */
struct rpcrdma_cm_event {
	const struct rdma_cm_id *id;
	enum rpcrdma_cm_user user;	/* not of what is DESTROYED */
	enum rpcrdma_cm_event_kind kind;
	int result;		/* of the owner's handler: 0, or the id goes */

	/* Of a REQUEST, a CONNECT and an EXISTING. */
	u16 local_port;
	u16 remote_port;
	/* What one side has sent, where the event brings that. */
	const void *private_data;
	u8 len;
	/* The program, where there is one and it is known: @pid is not 0. */
	pid_t pid;
	char comm[TASK_COMM_LEN];
};

/*
 * What the kernel's client counts of one of its transports. The differences
 * between two readings say what the peer does.
 */
struct rpcrdma_cm_counters {
	/* No request was being sent while these were read. */
	bool steady;
	u64 sends;
	u64 receives;
	u64 read_segments;
	u64 write_segments;
	u64 reply_segments;
	u64 local_invalidations;
	u64 failed_marshals;
};

/* Everything that is known of an id when one of its events is reported. */
struct rpcrdma_cm_observation {
	bool connecting;	/* of what is EXISTING: it is not established yet, */
	bool opaque;		/* and its transport cannot be read */

	struct sockaddr_in6 local;	/* or a sockaddr_in, by its family */
	struct sockaddr_in6 remote;
	enum rpcrdma_cm_transport transport;
	char device[IB_DEVICE_NAME_MAX];

	/* What the client has sent, as it keeps that. */
	u8 message[8];
	u8 message_len;

	/* Which of its transport's connections this is; 0: not known. */
	u32 generation;
	/* What the transport goes by; 0: not known. */
	u32 inline_send;
	u32 inline_receive;
	/* Whether the server invalidates remotely; -1: not known. */
	s8 send_with_invalidate;

	/* Of a client that is being established, or EXISTING. */
	bool counted;
	struct rpcrdma_cm_counters counters;
};

/*
 * Called in atomic context, with the mutex of the id's handler held except for a
 * DISCONNECT, and with what rpcrdma_cm_probes_register() was given.
 */
typedef void (*rpcrdma_cm_event_fn)(void *data, const struct rpcrdma_cm_event *event);

int rpcrdma_cm_probes_register(rpcrdma_cm_event_fn fn, void *data);
void rpcrdma_cm_probes_unregister(void);
void rpcrdma_cm_tell_existing(rpcrdma_cm_event_fn fn, void *data);
bool rpcrdma_cm_describe(struct rpcrdma_cm_observation *observation,
			 const struct rpcrdma_cm_event *event);
bool rpcrdma_cm_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id);

/* Of the C files among each other. */
/* With PREEMPT_RT, spin locks sleep, which the entry of a function must not. */
#define RPCRDMA_CM_HAS_PROBES						\
	(IS_ENABLED(CONFIG_FPROBE) && IS_ENABLED(CONFIG_TRACEPOINTS) &&	\
	 IS_ENABLED(CONFIG_KALLSYMS) && !IS_ENABLED(CONFIG_PREEMPT_RT))

#define RPCRDMA_CM_HAS_BTF						\
	(RPCRDMA_CM_HAS_PROBES && IS_ENABLED(CONFIG_DEBUG_INFO_BTF) &&	\
	 IS_ENABLED(CONFIG_BPF_SYSCALL))

struct rdma_conn_param;

bool rpcrdma_cm_user_of(const struct rdma_cm_id *id, enum rpcrdma_cm_user *user);
bool rpcrdma_cm_is_other(const struct rdma_cm_id *id);
u16 rpcrdma_cm_port(const struct sockaddr *address);
void rpcrdma_cm_set_program(struct rpcrdma_cm_event *event, struct task_struct *task);
int rpcrdma_cm_handlers_register(void);
void rpcrdma_cm_handlers_unregister(void);

/* A member of a structure: where it is, in octets from the structure's start. */
struct rpcrdma_cm_member {
	const char *structure;
	const char *path;	/* names, with dots between them */
	u32 size;		/* that it must have; 0: any */
	u32 offset;
};

#define RPCRDMA_CM_NO_MEMBER	U32_MAX

int rpcrdma_cm_find_members(struct rpcrdma_cm_member *members, size_t n);

int rpcrdma_cm_transports_register(void);
void rpcrdma_cm_transports_unregister(void);
int rpcrdma_cm_xprtrdma_describe(struct rpcrdma_cm_observation *observation,
				 const struct rdma_cm_id *id);
int rpcrdma_cm_svcrdma_describe(struct rpcrdma_cm_observation *observation,
				const struct rdma_cm_id *id);
bool rpcrdma_cm_xprtrdma_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id);

#endif /* RPCRDMA_CM_PROBES_H */
