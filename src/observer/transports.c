// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the structures that the kernel's RPC-over-RDMA client and server keep for a
 * connection. Members are found by their names in BTF, and are copied with functions
 * that cannot fault. The structures belong to the module rpcrdma. If rpcrdma is unloaded
 * and loaded again, it may be another build, so its members are found again.
 */

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/rpc_rdma.h>
#include <linux/sunrpc/svc_rdma.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xprt.h>
#include <linux/uaccess.h>
#include <rdma/rdma_cm.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_BTF

/* The members of the client, then those of its counters, then those of the server. */
enum {
	EP_ID,
	EP_XPRT,
	EP_CM_PRIVATE,
	EP_CONNECT_STATUS,
	EP_INLINE_SEND,
	EP_INLINE_RECV,
	XPRT,
	XPRT_CONNECTS,
	CLIENT_MEMBERS,

	XPRT_EP = CLIENT_MEMBERS,
	XPRT_STATE,
	XPRT_SENDS,
	XPRT_RECVS,
	XPRT_READS,
	XPRT_WRITES,
	XPRT_REPLIES,
	XPRT_LOCAL_INVS,
	XPRT_FAILED,
	COUNTED_MEMBERS,

	SVC_ID = COUNTED_MEMBERS,
	SVC_XPRT,
	SVC_XPT_FLAGS,
	SVC_SC_FLAGS,
	SVC_SEND_SGES,
	SVC_REQ_SIZE,
	SVC_SEND_WITH_INV,
	ALL_MEMBERS,
};

#define POINTER	sizeof(void *)
#define LONG	sizeof(unsigned long)
#define INT	sizeof(int)

/* rpcrdma_ep and rpcrdma_xprt are in net/sunrpc/xprtrdma/xprt_rdma.h. */
static struct rpcrdma_cm_member members[ALL_MEMBERS] = {
	[EP_ID] = { "rpcrdma_ep", "re_id", POINTER },
	[EP_XPRT] = { "rpcrdma_ep", "re_xprt", POINTER },
	[EP_CM_PRIVATE] = { "rpcrdma_ep", "re_cm_private",
			    sizeof(struct rpcrdma_connect_private) },
	[EP_CONNECT_STATUS] = { "rpcrdma_ep", "re_connect_status", INT },
	[EP_INLINE_SEND] = { "rpcrdma_ep", "re_inline_send", INT },
	[EP_INLINE_RECV] = { "rpcrdma_ep", "re_inline_recv", INT },
	[XPRT] = { "rpcrdma_xprt", "rx_xprt", 0 },
	[XPRT_CONNECTS] = { "rpcrdma_xprt", "rx_xprt.stat.connect_count", LONG },

	[XPRT_EP] = { "rpcrdma_xprt", "rx_ep", POINTER },
	[XPRT_STATE] = { "rpcrdma_xprt", "rx_xprt.state", LONG },
	[XPRT_SENDS] = { "rpcrdma_xprt", "rx_xprt.stat.sends", LONG },
	[XPRT_RECVS] = { "rpcrdma_xprt", "rx_xprt.stat.recvs", LONG },
	[XPRT_READS] = { "rpcrdma_xprt", "rx_stats.read_chunk_count", LONG },
	[XPRT_WRITES] = { "rpcrdma_xprt", "rx_stats.write_chunk_count", LONG },
	[XPRT_REPLIES] = { "rpcrdma_xprt", "rx_stats.reply_chunk_count", LONG },
	[XPRT_LOCAL_INVS] = { "rpcrdma_xprt", "rx_stats.local_inv_needed", LONG },
	[XPRT_FAILED] = { "rpcrdma_xprt", "rx_stats.failed_marshal_count", LONG },

	[SVC_ID] = { "svcxprt_rdma", "sc_cm_id", POINTER },
	[SVC_XPRT] = { "svcxprt_rdma", "sc_xprt", 0 },
	[SVC_XPT_FLAGS] = { "svcxprt_rdma", "sc_xprt.xpt_flags", LONG },
	[SVC_SC_FLAGS] = { "svcxprt_rdma", "sc_flags", LONG },
	[SVC_SEND_SGES] = { "svcxprt_rdma", "sc_max_send_sges", INT },
	[SVC_REQ_SIZE] = { "svcxprt_rdma", "sc_max_req_size", INT },
	[SVC_SEND_WITH_INV] = { "svcxprt_rdma", "sc_snd_w_inv", sizeof(bool) },
};

/*
 * Which of the three groups can be read. While rpcrdma has ids, this changes only before the
 * probes of rdma_cm are registered, and after they have been removed.
 */
static bool client_known, counted_known, server_known;
static DEFINE_MUTEX(members_mutex);

static bool all_found(int from, int to)
{
	for (; from < to; from++) {
		if (members[from].offset == RPCRDMA_CM_NO_MEMBER)
			return false;
	}
	return true;
}

static void find_members(void)
{
	bool client, counted, server;

	mutex_lock(&members_mutex);
	if (!client_known && !server_known &&
	    !rpcrdma_cm_find_members(IS_BUILTIN(CONFIG_SUNRPC_XPRT_RDMA) ? NULL : "rpcrdma",
				     members, ARRAY_SIZE(members))) {
		client = all_found(0, CLIENT_MEMBERS);
		counted = client && all_found(CLIENT_MEMBERS, COUNTED_MEMBERS);
		server = all_found(COUNTED_MEMBERS, ALL_MEMBERS);
		/* Publishes the offsets before the flags. Pairs with smp_load_acquire(). */
		smp_wmb();
		WRITE_ONCE(client_known, client);
		WRITE_ONCE(counted_known, counted);
		WRITE_ONCE(server_known, server);
		rpcrdma_cm_nfs_ends_register();
	}
	mutex_unlock(&members_mutex);
}

static void forget_members(void)
{
	mutex_lock(&members_mutex);
	WRITE_ONCE(client_known, false);
	WRITE_ONCE(counted_known, false);
	WRITE_ONCE(server_known, false);
	rpcrdma_cm_nfs_ends_unregister();
	mutex_unlock(&members_mutex);
}

static int module_changed(struct notifier_block *nb, unsigned long action, void *data)
{
	const struct module *mod = data;

	if (strcmp(mod->name, "rpcrdma"))
		return NOTIFY_DONE;
	if (action == MODULE_STATE_LIVE) {
		/* The unloading of an earlier rpcrdma was missed if observing began during it. */
		forget_members();
		find_members();
	} else if (action == MODULE_STATE_GOING) {
		forget_members();
	}
	return NOTIFY_OK;
}

/*
 * Before the notifier of tracepoints, which has the priority 0: a tracepoint of a module that is
 * unloaded must not have probes any more.
 */
static struct notifier_block module_notifier = {
	.notifier_call = module_changed,
	.priority = 1,
};

int rpcrdma_cm_transports_register(void)
{
	int ret = register_module_notifier(&module_notifier);

	if (!ret)
		find_members();
	return ret;
}

void rpcrdma_cm_transports_unregister(void)
{
	/*
	 * While the notifier is registered: it makes the unloading of rpcrdma wait until the probes
	 * in rpcrdma have been removed.
	 */
	forget_members();
	unregister_module_notifier(&module_notifier);
	/* rpcrdma may have been loaded between the two calls, and its members found again. */
	forget_members();
}

/* Copies a member. @to must have the size in members[], which BTF has confirmed. */
static long copy_member(void *to, const void *from, int member)
{
	return copy_from_kernel_nofault(to, from + members[member].offset, members[member].size);
}

/*
 * Finds the endpoint of an id, and its transport. The client frees the endpoint before
 * it destroys the id, but after the id's queue pair. So if the id still has its queue
 * pair after the endpoint was copied, the endpoint was valid. Copying freed memory
 * cannot fault, and the copy is then discarded.
 *
 * Return: whether the id has an endpoint; then @ep and @xprt are set. The caller must
 * check has_queue_pair() after it has copied the members.
 */
static bool find_endpoint(const struct rdma_cm_id *id, const void **ep, const void **xprt)
{
	const struct rdma_cm_id *ep_id;
	const void *rpc_xprt;

	*ep = READ_ONCE(id->context);
	if (copy_member(&ep_id, *ep, EP_ID) || ep_id != id ||
	    copy_member(&rpc_xprt, *ep, EP_XPRT))
		return false;
	*xprt = rpc_xprt - members[XPRT].offset;
	return true;
}

static bool has_queue_pair(const struct rdma_cm_id *id)
{
	/* The members were copied before this check. */
	smp_rmb();
	return READ_ONCE(id->qp);
}

/**
 * rpcrdma_cm_id_of_client() - find the present id of a transport of the client
 * @xprt: the transport
 *
 * Context: any.
 *
 * Return: the address of the id, which may be destroyed; or NULL if it is not known.
 */
const struct rdma_cm_id *rpcrdma_cm_id_of_client(const struct rpc_xprt *xprt)
{
	const struct rdma_cm_id *id;
	const void *ep;

	/* Pairs with find_members(). */
	if (!smp_load_acquire(&counted_known) ||
	    copy_member(&ep, (const void *)xprt - members[XPRT].offset, XPRT_EP) ||
	    copy_member(&id, ep, EP_ID))
		return NULL;
	return id;
}

/**
 * rpcrdma_cm_id_of_server() - find the id of a transport of the server
 * @xprt: the transport
 *
 * Context: any.
 *
 * Return: as rpcrdma_cm_id_of_client().
 */
const struct rdma_cm_id *rpcrdma_cm_id_of_server(const struct svc_xprt *xprt)
{
	const struct rdma_cm_id *id;

	/* Pairs with find_members(). */
	if (!smp_load_acquire(&server_known) ||
	    copy_member(&id, (const void *)xprt - members[SVC_XPRT].offset, SVC_ID))
		return NULL;
	return id;
}

static bool has_this_queue_pair(const struct rdma_cm_id *id, const struct ib_qp *qp)
{
	struct ib_qp *found;

	return !get_kernel_nofault(found, &id->qp) && found == qp;
}

/**
 * rpcrdma_cm_id_of_queue() - find the id of a queue pair of the client or of the server
 * @context: the context of the completion queue of @qp. Both keep their transports there.
 * @qp: the queue pair, which may be one of others
 *
 * Context: any.
 *
 * Return: as rpcrdma_cm_id_of_client().
 */
const struct rdma_cm_id *rpcrdma_cm_id_of_queue(const void *context, const struct ib_qp *qp)
{
	const struct rdma_cm_id *id;
	const void *ep;

	/* Pairs with find_members(). */
	if (smp_load_acquire(&counted_known) && !copy_member(&ep, context, XPRT_EP) &&
	    !copy_member(&id, ep, EP_ID) && has_this_queue_pair(id, qp))
		return id;
	/* Pairs with find_members(). */
	if (smp_load_acquire(&server_known) && !copy_member(&id, context, SVC_ID) &&
	    has_this_queue_pair(id, qp))
		return id;
	return NULL;
}

/**
 * rpcrdma_cm_xprtrdma_count() - read the counters that the client keeps of a transport
 * @counters: is set
 * @id: an id of the client, which must not be destroyed during the call
 *
 * The counters may change meanwhile. Receives are read first, then segments, then
 * local invalidations, and sends last. In this order no call appears to be answered that
 * is not, and no segment appears to be invalidated by the server that is not. While a
 * call is being sent, its segments are counted already, and the call itself is not: the
 * transport is locked then.
 *
 * A transport may be freed before its endpoint. It refers to the endpoint until just
 * before that, so the reference is checked last.
 *
 * Context: any.
 *
 * Return: whether the counters could be read.
 */
bool rpcrdma_cm_xprtrdma_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id)
{
	enum {
		LOCK, SENDS, FAILED, RECVS, READS, WRITES, REPLIES, LOCAL, FAILED2, SENDS2, LOCK2, N
	};
	static const int order[N] = {
		[LOCK] = XPRT_STATE,
		[SENDS] = XPRT_SENDS,
		[FAILED] = XPRT_FAILED,
		[RECVS] = XPRT_RECVS,
		[READS] = XPRT_READS,
		[WRITES] = XPRT_WRITES,
		[REPLIES] = XPRT_REPLIES,
		[LOCAL] = XPRT_LOCAL_INVS,
		[FAILED2] = XPRT_FAILED,
		[SENDS2] = XPRT_SENDS,
		[LOCK2] = XPRT_STATE,
	};
	const void *ep, *xprt, *xprt_ep;
	unsigned long read[N];
	int i;

	/* Pairs with find_members(). */
	if (!smp_load_acquire(&counted_known))
		return false;
	if (!find_endpoint(id, &ep, &xprt))
		return false;

	for (i = 0; i < N; i++) {
		if (copy_member(&read[i], xprt, order[i]))
			return false;
		/* The members are read in this order. */
		smp_rmb();
	}
	if (copy_member(&xprt_ep, xprt, XPRT_EP) || xprt_ep != ep || !has_queue_pair(id))
		return false;

	*counters = (struct rpcrdma_cm_counters) {
		.steady = read[SENDS] == read[SENDS2] && read[FAILED] == read[FAILED2] &&
			  !test_bit(XPRT_LOCKED, &read[LOCK]) &&
			  !test_bit(XPRT_LOCKED, &read[LOCK2]),
		.sends = read[SENDS2],
		.receives = read[RECVS],
		.read_segments = read[READS],
		.write_segments = read[WRITES],
		.reply_segments = read[REPLIES],
		.local_invalidations = read[LOCAL],
		.failed_marshals = read[FAILED2],
	};
	return true;
}

/*
 * Adds an established connection to the generation if it is not counted yet. A transport that has
 * closed it does not refer to its endpoint any more, which stays until the peer has answered.
 * Returns -ENOTCONN then.
 */
static int add_uncounted(struct rpcrdma_cm_observation *observation, const struct rdma_cm_id *id,
			 const void *ep, const void *xprt, unsigned long connects)
{
	unsigned long state, now;
	const void *xprt_ep;

	/* Pairs with find_members(). */
	if (!smp_load_acquire(&counted_known))
		return 0;
	if (copy_member(&state, xprt, XPRT_STATE))
		return -ENOTCONN;
	/* The members are read in this order. */
	smp_rmb();
	if (copy_member(&now, xprt, XPRT_CONNECTS) || copy_member(&xprt_ep, xprt, XPRT_EP) ||
	    xprt_ep != ep || !has_queue_pair(id))
		return -ENOTCONN;
	observation->generation = now;
	if (now == connects && !test_bit(XPRT_CONNECTED, &state))
		observation->generation++;
	return 0;
}

/*
 * Whether an established connection goes on, although its status says another thing.
 * UNREACHABLE overwrites the status of one whose neighbour has another hardware address, and
 * ADDR_CHANGE after that does, too. xprtrdma does not disconnect because of that, but
 * rpcrdma_mrs_refresh() makes no more memory regions then.
 */
static bool goes_on(const void *ep, const void *xprt)
{
	const void *xprt_ep;
	unsigned long state;

	/* Pairs with find_members(). */
	return smp_load_acquire(&counted_known) && !copy_member(&state, xprt, XPRT_STATE) &&
	       test_bit(XPRT_CONNECTED, &state) && !test_bit(XPRT_CLOSE_WAIT, &state) &&
	       !copy_member(&xprt_ep, xprt, XPRT_EP) && xprt_ep == ep;
}

/*
 * The members of a structure are not known. Without them, the ids of transports are not found,
 * either, for which the causes of ends are noted.
 */
static void members_missing(void)
{
	rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_MEMBERS);
	rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_CAUSES);
}

/**
 * rpcrdma_cm_xprtrdma_describe() - read the values that the client uses
 * @observation: the values are added to this
 * @id: an id of the client, which must not be destroyed during the call
 *
 * The number of connections comes from the transport. It may be wrong during umount,
 * when the transport may have been freed.
 *
 * Context: any.
 *
 * Return: 0; -EOPNOTSUPP if the members of the endpoint are not known; -ENOTCONN if the
 * id has no endpoint, or the endpoint is being freed.
 */
int rpcrdma_cm_xprtrdma_describe(struct rpcrdma_cm_observation *observation,
				 const struct rdma_cm_id *id)
{
	struct rpcrdma_connect_private message;
	u32 inline_send, inline_receive;
	unsigned long connects;
	const void *ep, *xprt;
	int connect_status, ret;

	/* Pairs with find_members(). */
	if (!smp_load_acquire(&counted_known))
		members_missing();
	/* Pairs with find_members(). */
	if (!smp_load_acquire(&client_known))
		return -EOPNOTSUPP;

	if (!find_endpoint(id, &ep, &xprt) ||
	    copy_member(&message, ep, EP_CM_PRIVATE) ||
	    copy_member(&connect_status, ep, EP_CONNECT_STATUS) ||
	    copy_member(&inline_send, ep, EP_INLINE_SEND) ||
	    copy_member(&inline_receive, ep, EP_INLINE_RECV) ||
	    copy_member(&connects, xprt, XPRT_CONNECTS) ||
	    !has_queue_pair(id))
		return -ENOTCONN;

	if ((connect_status == -ENETUNREACH || connect_status == -ENODEV) && goes_on(ep, xprt))
		connect_status = 1;
	/* The connection has ended, and xprtrdma is going to disconnect. */
	if (connect_status < 0)
		return -ENOTCONN;
	/*
	 * If the connection is established, the sizes are final. It is counted just before the
	 * transport is marked as connected.
	 */
	observation->generation = connects;
	if (connect_status == 1) {
		ret = add_uncounted(observation, id, ep, xprt, connects);
		if (ret)
			return ret;
		observation->inline_send = inline_send;
		observation->inline_receive = inline_receive;
		observation->counted = rpcrdma_cm_xprtrdma_count(&observation->counters, id);
	} else if (connect_status == 0) {
		observation->generation++;
		observation->connecting = true;
	}
	BUILD_BUG_ON(sizeof(message) > sizeof(observation->message));
	memcpy(observation->message, &message, sizeof(message));
	observation->message_len = sizeof(message);
	return 0;
}

/*
 * Returns the length of the longest message that the server may send inline. If a call
 * has no Reply chunk, the server does not compare the reply with the client's Receive
 * Size. It sends as many SGEs as it may use in one Send, less one: the transport header,
 * the first page of the reply and the pages behind that. A reply that needs more SGEs is
 * copied into one buffer of @req_size bytes, if it fits.
 */
static u32 max_inline_send(int send_sges, int req_size)
{
	u32 pieces = 0;

	if (send_sges > 2)
		pieces = RPCRDMA_HDRLEN_MIN + (send_sges - 2) * PAGE_SIZE;
	return max_t(u32, pieces, req_size);
}

/**
 * rpcrdma_cm_svcrdma_describe() - read the values that the server uses
 * @observation: the values are added to this
 * @id: an id of the server, which must not be destroyed during the call
 *
 * An id with a queue pair has a transport of its own, and the server frees the transport
 * after the id. The id of a listener has no queue pair.
 *
 * Context: any.
 *
 * Return: 0; -EOPNOTSUPP if the members of the transport are not known; -ENOTCONN if the
 * id has no transport, or the transport is being closed.
 */
int rpcrdma_cm_svcrdma_describe(struct rpcrdma_cm_observation *observation,
				const struct rdma_cm_id *id)
{
	const void *xprt = READ_ONCE(id->context);
	const struct rdma_cm_id *xprt_id;
	int send_sges, req_size;
	unsigned long xpt_flags, sc_flags;
	u8 invalidates;

	if (!READ_ONCE(id->qp))
		return -ENOTCONN;
	/* Pairs with find_members(). */
	if (!smp_load_acquire(&server_known)) {
		members_missing();
		return -EOPNOTSUPP;
	}

	if (copy_member(&xprt_id, xprt, SVC_ID) || xprt_id != id ||
	    copy_member(&xpt_flags, xprt, SVC_XPT_FLAGS) || test_bit(XPT_DEAD, &xpt_flags) ||
	    test_bit(XPT_CLOSE, &xpt_flags) ||
	    copy_member(&sc_flags, xprt, SVC_SC_FLAGS) ||
	    copy_member(&send_sges, xprt, SVC_SEND_SGES) ||
	    copy_member(&req_size, xprt, SVC_REQ_SIZE) ||
	    copy_member(&invalidates, xprt, SVC_SEND_WITH_INV))
		return -ENOTCONN;

	/* Until the server hears ESTABLISHED. */
	observation->connecting = test_bit(RDMAXPRT_CONN_PENDING, &sc_flags);
	observation->inline_send = max_inline_send(send_sges, req_size);
	observation->inline_receive = req_size;
	observation->send_with_invalidate = !!invalidates;
	return 0;
}

#else

int rpcrdma_cm_transports_register(void)
{
	rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_CAUSES);
	return 0;
}

void rpcrdma_cm_transports_unregister(void)
{
}

bool rpcrdma_cm_xprtrdma_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id)
{
	return false;
}

int rpcrdma_cm_xprtrdma_describe(struct rpcrdma_cm_observation *observation,
				 const struct rdma_cm_id *id)
{
	return -EOPNOTSUPP;
}

int rpcrdma_cm_svcrdma_describe(struct rpcrdma_cm_observation *observation,
				const struct rdma_cm_id *id)
{
	return id->qp ? -EOPNOTSUPP : -ENOTCONN;
}

const struct rdma_cm_id *rpcrdma_cm_id_of_client(const struct rpc_xprt *xprt)
{
	return NULL;
}

const struct rdma_cm_id *rpcrdma_cm_id_of_server(const struct svc_xprt *xprt)
{
	return NULL;
}

const struct rdma_cm_id *rpcrdma_cm_id_of_queue(const void *context, const struct ib_qp *qp)
{
	return NULL;
}

#endif
