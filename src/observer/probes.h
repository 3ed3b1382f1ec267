/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The events of other owners' rdma_cm ids, which probes report to the observer, and the
 * module's own ids whose ends are watched. The C files and the Rust bindings both use this
 * file, so they cannot differ.
 */
#ifndef RPCRDMA_CM_PROBES_H
#define RPCRDMA_CM_PROBES_H

#include <linux/in6.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "../shim.h"

struct rdma_cm_id;
struct rpcrdma_cm_watched_id;

/* Bits of rpcrdma_cm_limits(): why ids are not observed, or not everything of them. */
enum rpcrdma_cm_limit {
	RPCRDMA_CM_LIMIT_FPROBE = 1,
	RPCRDMA_CM_LIMIT_TRACEPOINTS = 2,
	RPCRDMA_CM_LIMIT_KALLSYMS = 4,
	RPCRDMA_CM_LIMIT_BTF = 8,
	RPCRDMA_CM_LIMIT_MEMBERS = 16,	/* a structure of rpcrdma could not be read */
	RPCRDMA_CM_LIMIT_SYMBOLS = 32,	/* a handler of rpcrdma or rdma_ucm is not known */
	RPCRDMA_CM_LIMIT_SEARCH = 64,	/* older ids were not all found */
	RPCRDMA_CM_LIMIT_CAUSES = 128,	/* why connections end is not all noted */
	RPCRDMA_CM_LIMIT_USERS = 256,	/* the user of a program is not known */
};

/* The owner of an id. */
enum rpcrdma_cm_user {
	RPCRDMA_CM_XPRTRDMA,	/* the kernel's RPC-over-RDMA client */
	RPCRDMA_CM_SVCRDMA,	/* the kernel's RPC-over-RDMA server */
	RPCRDMA_CM_UCMA,	/* a program; its protocol is not known */
};

enum rpcrdma_cm_event_kind {
	RPCRDMA_CM_REQUEST,	/* the handler of a server was called with a REQ */
	/*
	 * A server sends REP, a program as client RTU; a client sends REQ. Of a program:
	 * it has been sent, because the call returned 0.
	 */
	RPCRDMA_CM_ACCEPT,
	RPCRDMA_CM_CONNECT,
	RPCRDMA_CM_RESPONSE,	/* a program has received REP, and may reject it */
	RPCRDMA_CM_ESTABLISHED,
	RPCRDMA_CM_REJECTED,
	RPCRDMA_CM_FAILED,
	RPCRDMA_CM_CONNECT_FAILED,	/* of the kernel's NFS: the call returned an error */
	RPCRDMA_CM_DISCONNECT,	/* the owner disconnects; no mutex is held */
	RPCRDMA_CM_DISCONNECTED,
	RPCRDMA_CM_DEVICE_REMOVED,
	RPCRDMA_CM_ADDRESS_CHANGED,
	RPCRDMA_CM_DESTROYED,
	RPCRDMA_CM_EXISTING,	/* the search found the id: it is older than the probes */
	RPCRDMA_CM_LOST,	/* there was no room for @result events, of any ids */

	/* Of ends.c: */
	RPCRDMA_CM_PEER_CLOSED,	/* iWARP: the peer has disconnected */
	RPCRDMA_CM_CLOSED,	/* iWARP: the device has closed the connection */
	RPCRDMA_CM_COMPLETION,	/* of the kernel's NFS: a work request failed or was flushed */
	RPCRDMA_CM_QP_EVENT,	/* of the kernel's NFS: an error of the queue pair */
	RPCRDMA_CM_REMOVAL,	/* the kernel's NFS hears that the device is being removed */
};

/* The counters that the kernel's client keeps of one of its transports. */
struct rpcrdma_cm_counters {
	/* No call was being sent while the others were read. */
	bool steady;
	u64 sends;
	u64 receives;
	u64 read_segments;
	u64 write_segments;
	u64 reply_segments;
	u64 local_invalidations;
	u64 failed_marshals;
};

/* Everything that is known of an id when one of its events is noted. */
struct rpcrdma_cm_observation {
	bool connecting;	/* of NFS: the connection is not established yet */
	bool opaque;		/* of EXISTING: its transport cannot be read */

	struct sockaddr_in6 local;	/* or a sockaddr_in, by its family */
	struct sockaddr_in6 remote;
	enum rpcrdma_cm_transport transport;
	char device[IB_DEVICE_NAME_MAX];

	/* The private data that the kernel's client has sent. */
	u8 message[8];
	u8 message_len;

	/* How many connections the transport has made, with this one; 0: not known. */
	u32 generation;
	/* The inline sizes that the transport uses; 0: not known. */
	u32 inline_send;
	u32 inline_receive;
	/* Whether the server invalidates remotely; -1: not known. */
	s8 send_with_invalidate;

	/* Whether @counters are set: of a client that is ESTABLISHED or EXISTING. */
	bool counted;
	struct rpcrdma_cm_counters counters;
};

/*
 * One event of an id, with everything that was known of the id at that moment. The id may
 * have been destroyed since.
 */
struct rpcrdma_cm_event {
	u64 number;		/* events are numbered in their order */
	const struct rdma_cm_id *id;	/* NULL for LOST */
	/* For DESTROYED, LOST and the events of ends.c: UCMA or another one. */
	enum rpcrdma_cm_user user;
	enum rpcrdma_cm_event_kind kind;
	/*
	 * Of REQUEST: that of the owner's handler; if not 0, the id is destroyed. Of DISCONNECTED:
	 * whether PEER_CLOSED was noted before, if the peer disconnected. Of CONNECT_FAILED: a
	 * negative errno. Of COMPLETION: an enum ib_wc_status. Of QP_EVENT: an enum ib_event_type.
	 * Of LOST: a number of events.
	 */
	int result;

	/* Set for REQUEST, CONNECT and EXISTING. */
	u16 local_port;
	u16 remote_port;
	/* The private data of one side, if the event carries it. */
	u8 private_data[U8_MAX];
	u8 len;
	/* The program that owns the id; @pid is 0 if there is none or it is not known. */
	pid_t pid;
	char comm[TASK_COMM_LEN];
	/*
	 * Of a program: its user, as rpcrdma_cm_uid_of() returns it. Of LOST: 0 for the programs
	 * of root.
	 */
	u32 uid;

	/*
	 * Whether @observation is set: the id is a connection, or about to become one. Not set for
	 * DISCONNECT, DESTROYED and LOST, nor for the events of ends.c.
	 */
	bool described;
	struct rpcrdma_cm_observation observation;
};

/*
 * Is called for each event, one at a time in their order, with the @data of
 * rpcrdma_cm_probes_register(), by a work.
 */
typedef void (*rpcrdma_cm_event_fn)(void *data, const struct rpcrdma_cm_event *event);

int rpcrdma_cm_probes_register(rpcrdma_cm_event_fn fn, void *data);
void rpcrdma_cm_probes_unregister(void);
u32 rpcrdma_cm_limits(void);
unsigned long rpcrdma_cm_missed_calls(void);
void rpcrdma_cm_search(void);
void rpcrdma_cm_events_flush(void);
bool rpcrdma_cm_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id);
struct rpcrdma_cm_watched_id *rpcrdma_cm_watch(const struct rdma_cm_id *id);
void rpcrdma_cm_unwatch(struct rpcrdma_cm_watched_id *watched);
bool rpcrdma_cm_peer_may_have_disconnected(const struct rpcrdma_cm_watched_id *watched);

/* The rest is used by the C files only. */

#define RPCRDMA_CM_HAS_PROBES						\
	(IS_ENABLED(CONFIG_FPROBE) && IS_ENABLED(CONFIG_TRACEPOINTS) &&	\
	 IS_ENABLED(CONFIG_KALLSYMS))

#define RPCRDMA_CM_HAS_BTF						\
	(RPCRDMA_CM_HAS_PROBES && IS_ENABLED(CONFIG_DEBUG_INFO_BTF) &&	\
	 IS_ENABLED(CONFIG_BPF_SYSCALL))

struct rdma_conn_param;
struct rpc_xprt;
struct svc_xprt;

void rpcrdma_cm_limited(enum rpcrdma_cm_limit limit);
bool rpcrdma_cm_user_of(const struct rdma_cm_id *id, enum rpcrdma_cm_user *user);
bool rpcrdma_cm_known_user_of(const struct rdma_cm_id *id, enum rpcrdma_cm_user *user);
bool rpcrdma_cm_is_other(const struct rdma_cm_id *id);
bool rpcrdma_cm_is_program(const struct rdma_cm_id *id);
bool rpcrdma_cm_is_accepted(const struct rdma_cm_id *id);
u32 rpcrdma_cm_uid_of(const struct rdma_cm_id *id);
void rpcrdma_cm_note_existing(const struct rdma_cm_id *id, enum rpcrdma_cm_user user,
			      struct task_struct *task);
int rpcrdma_cm_events_register(rpcrdma_cm_event_fn fn, void *data);
void rpcrdma_cm_events_unregister(void);
struct rpcrdma_cm_event *rpcrdma_cm_note_begins(const struct rdma_cm_id *id,
						enum rpcrdma_cm_user user,
						enum rpcrdma_cm_event_kind kind,
						unsigned long *flags);
void rpcrdma_cm_note_ends(unsigned long flags);
void rpcrdma_cm_wait_for_room(bool programs);
int rpcrdma_cm_find_entries(void);
void rpcrdma_cm_search_stop(bool stop);
int rpcrdma_cm_owners_register(void);
void rpcrdma_cm_owners_unregister(void);

/* A member of a structure. */
struct rpcrdma_cm_member {
	const char *structure;
	const char *path;	/* the name, or names with dots between them */
	u32 size;		/* the size that it must have; 0: any */
	u32 offset;		/* in bytes from the start of the structure */
};

#define RPCRDMA_CM_NO_MEMBER	U32_MAX

int rpcrdma_cm_find_members(const char *module, struct rpcrdma_cm_member *members, size_t n);

int rpcrdma_cm_transports_register(void);
void rpcrdma_cm_transports_unregister(void);
int rpcrdma_cm_xprtrdma_describe(struct rpcrdma_cm_observation *observation,
				 const struct rdma_cm_id *id);
int rpcrdma_cm_svcrdma_describe(struct rpcrdma_cm_observation *observation,
				const struct rdma_cm_id *id);
bool rpcrdma_cm_xprtrdma_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id);
const struct rdma_cm_id *rpcrdma_cm_id_of_client(const struct rpc_xprt *xprt);
const struct rdma_cm_id *rpcrdma_cm_id_of_server(const struct svc_xprt *xprt);
const struct rdma_cm_id *rpcrdma_cm_id_of_queue(const void *context, const struct ib_qp *qp);

void rpcrdma_cm_ends_register(void);
void rpcrdma_cm_ends_unregister(void);
void rpcrdma_cm_nfs_ends_register(void);
void rpcrdma_cm_nfs_ends_unregister(void);
bool rpcrdma_cm_is_peer_noted(const struct rdma_cm_id *id);
unsigned long rpcrdma_cm_missed_ends(void);

#endif /* RPCRDMA_CM_PROBES_H */
