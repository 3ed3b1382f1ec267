// SPDX-License-Identifier: GPL-2.0
/*
 * Why connections end. These functions are probed. The first two are called for every event
 * of the iWARP CM and of queue pairs; the others when a connection is given up:
 *
 *   iw_cm:cm_event_handler()         an iWARP device has received FIN or RST, or has closed
 *                                    the connection
 *   ib_core:__ib_qp_event_handler()  an event of a queue pair
 *   xprt_force_disconnect()          the kernel's client gives a connection up
 *   svc_xprt_deferred_close()        the kernel's server does
 *
 * The first one also tells whether the peers of the module's own ids disconnect.
 *
 * They are called in any context. Two tracepoints of rpcrdma say that the kernel's client or
 * server hears that a device is being removed. It then disconnects, before rdma_cm says so.
 */

#include <linux/atomic.h>
#include <linux/fprobe.h>
#include <linux/hashtable.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xprt.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_PROBES

/* The largest number of entries of ib_cq.wc that are read: that of IB_POLL_BATCH. */
#define COMPLETIONS_MAX		16

/* Notes an event of an id that may have been destroyed: its memory is read without faults. */
static void note(const struct rdma_cm_id *id, enum rpcrdma_cm_user user,
		 enum rpcrdma_cm_event_kind kind, int result)
{
	struct rpcrdma_cm_event *event;
	unsigned long flags;

	event = rpcrdma_cm_note_begins(id, user, kind, &flags);
	if (!event)
		return;
	event->result = result;
	rpcrdma_cm_note_ends(flags);
}

/* An id of the module's own, whose address alone is used. */
struct rpcrdma_cm_watched_id {
	struct hlist_node node;
	const struct rdma_cm_id *id;
	bool peer_closed;
};

static DEFINE_HASHTABLE(watched_ids, 8);
static DEFINE_RAW_SPINLOCK(watched_lock);

static void note_watched(const struct rdma_cm_id *id)
{
	struct rpcrdma_cm_watched_id *watched;
	unsigned long flags;

	raw_spin_lock_irqsave(&watched_lock, flags);
	hash_for_each_possible(watched_ids, watched, node, (unsigned long)id) {
		if (watched->id == id)
			WRITE_ONCE(watched->peer_closed, true);
	}
	raw_spin_unlock_irqrestore(&watched_lock, flags);
}

/*
 * The iWARP CM drops the events of an id that is being destroyed only after this. So the
 * rdma_cm_id may be destroyed already.
 */
static int iwarp_event(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
		       struct ftrace_regs *regs, void *entry_data)
{
	const struct iw_cm_id *cm_id = (const void *)ftrace_regs_get_argument(regs, 0);
	const struct iw_cm_event *event = (const void *)ftrace_regs_get_argument(regs, 1);
	const struct rdma_cm_id *id = cm_id->context;
	enum rpcrdma_cm_event_kind kind;
	enum rpcrdma_cm_user user;

	switch (event->event) {
	case IW_CM_EVENT_DISCONNECT:
		kind = RPCRDMA_CM_PEER_CLOSED;
		break;
	case IW_CM_EVENT_CLOSE:
		/* cxgb4 reports RST only like this. */
		kind = event->status == -ECONNRESET ? RPCRDMA_CM_PEER_CLOSED : RPCRDMA_CM_CLOSED;
		break;
	default:
		return 0;
	}
	if (kind == RPCRDMA_CM_PEER_CLOSED)
		note_watched(id);
	if (rpcrdma_cm_known_user_of(id, &user))
		note(id, user, kind, 0);
	return 0;
}

/* The queue pair exists until the driver's call returns, and so does its id. */
static int qp_event(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
		    struct ftrace_regs *regs, void *entry_data)
{
	const struct ib_event *event = (const void *)ftrace_regs_get_argument(regs, 0);
	const struct ib_qp *qp = event->element.qp;
	const struct rdma_cm_id *id;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_PATH_MIG_ERR:
		break;
	default:
		return 0;
	}
	/* Programs have no id with a queue pair. */
	if (qp->uobject || !qp->recv_cq)
		return 0;
	id = rpcrdma_cm_id_of_queue(qp->recv_cq->cq_context, qp);
	if (id)
		note(id, RPCRDMA_CM_XPRTRDMA, RPCRDMA_CM_QP_EVENT, event->event);
	return 0;
}

/*
 * Notes the first failed completion of the batch that is being handled, if this is called
 * by the handler of one. The work of a completion queue then is the current one, so the
 * queue exists, and nothing else writes to its completions.
 *
 * Completions are in the order of the queue, and each one is handled before the next one.
 * So the first failed one is not behind that of the current handler. If no completion
 * failed, the rest of the array may be old, or uninitialized: there, a queue pair that is
 * not that of the id ends the search. A flush is noted with @flushes only: there are many.
 */
static void note_completion(const struct rdma_cm_id *id, bool flushes)
{
	const struct work_struct *work = current_work();
	enum ib_wc_status status;
	const struct ib_wc *wc;
	struct ib_cq *cq;
	struct ib_qp *qp, *wc_qp;
	size_t i;

	if (!work || get_kernel_nofault(qp, &id->qp) || !qp)
		return;
	if (get_kernel_nofault(cq, &qp->recv_cq) || !cq || &cq->work != work) {
		if (get_kernel_nofault(cq, &qp->send_cq) || !cq || &cq->work != work)
			return;
	}
	for (i = 0; i < COMPLETIONS_MAX; i++) {
		wc = &cq->wc[i];
		if (get_kernel_nofault(wc_qp, &wc->qp) || wc_qp != qp ||
		    get_kernel_nofault(status, &wc->status))
			return;
		if (status == IB_WC_SUCCESS)
			continue;
		if (status != IB_WC_WR_FLUSH_ERR || flushes)
			note(id, RPCRDMA_CM_XPRTRDMA, RPCRDMA_CM_COMPLETION, status);
		return;
	}
}

static int client_disconnects(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			      struct ftrace_regs *regs, void *entry_data)
{
	const struct rpc_xprt *xprt = (const void *)ftrace_regs_get_argument(regs, 0);
	const struct rdma_cm_id *id;

	if (!xprt->xprt_class || xprt->xprt_class->ident != XPRT_TRANSPORT_RDMA)
		return 0;
	id = rpcrdma_cm_id_of_client(xprt);
	if (id)
		note_completion(id, !test_bit(XPRT_CLOSE_WAIT, &xprt->state));
	return 0;
}

static int server_disconnects(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			      struct ftrace_regs *regs, void *entry_data)
{
	const struct svc_xprt *xprt = (const void *)ftrace_regs_get_argument(regs, 0);
	const struct rdma_cm_id *id;

	if (!xprt->xpt_class || xprt->xpt_class->xcl_ident != XPRT_TRANSPORT_RDMA)
		return 0;
	id = rpcrdma_cm_id_of_server(xprt);
	if (id)
		note_completion(id, !test_bit(XPT_CLOSE, &xprt->xpt_flags));
	return 0;
}

static void device_removal(void *data, const struct rdma_cm_id *id)
{
	note(id, RPCRDMA_CM_XPRTRDMA, RPCRDMA_CM_REMOVAL, 0);
}

static struct {
	const char *name;
	struct tracepoint *tracepoint;	/* NULL: not registered */
} removals[] = {
	{ .name = "xprtrdma_device_removal" },
	{ .name = "svcrdma_device_removal" },
};

static void note_tracepoint(struct tracepoint *tracepoint, void *unused)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(removals); i++) {
		if (!strcmp(tracepoint->name, removals[i].name))
			removals[i].tracepoint = tracepoint;
	}
}

static int note_module(struct notifier_block *nb, unsigned long action, void *data)
{
	struct module *mod = ((struct tp_module *)data)->mod;
	unsigned int i;

	if (action != MODULE_STATE_COMING || strcmp(mod->name, "rpcrdma"))
		return NOTIFY_DONE;
	for (i = 0; i < mod->num_tracepoints; i++)
		note_tracepoint(tracepoint_ptr_deref(&mod->tracepoints_ptrs[i]), NULL);
	return NOTIFY_OK;
}

static void probe_removals(void)
{
	struct notifier_block nb = { .notifier_call = note_module };
	size_t i;

	for_each_kernel_tracepoint(note_tracepoint, NULL);
	if (!register_tracepoint_module_notifier(&nb))
		unregister_tracepoint_module_notifier(&nb);
	for (i = 0; i < ARRAY_SIZE(removals); i++) {
		if (!removals[i].tracepoint ||
		    tracepoint_probe_register(removals[i].tracepoint, device_removal, NULL)) {
			removals[i].tracepoint = NULL;
			rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_CAUSES);
		}
	}
}

static void remove_removals(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(removals); i++) {
		if (removals[i].tracepoint)
			tracepoint_probe_unregister(removals[i].tracepoint, device_removal, NULL);
		removals[i].tracepoint = NULL;
	}
	tracepoint_synchronize_unregister();
}

static struct fprobe iwarp_probe = { .entry_handler = iwarp_event };
static struct fprobe qp_probe = { .entry_handler = qp_event };
static struct fprobe client_probe = { .entry_handler = client_disconnects };
static struct fprobe server_probe = { .entry_handler = server_disconnects };

/* Returns whether the function is probed. */
static bool probe(struct fprobe *fprobe, unsigned long address)
{
	if (!address || register_fprobe_ips(fprobe, &address, 1)) {
		rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_CAUSES);
		return false;
	}
	return true;
}

/* The calls that were missed by probes that have been removed since. */
static atomic_long_t missed = ATOMIC_LONG_INIT(0);

static void remove(struct fprobe *fprobe)
{
	if (fprobe->hlist_array)
		unregister_fprobe(fprobe);
	atomic_long_add(fprobe->nmissed, &missed);
	fprobe->nmissed = 0;
}

/* Returns the address of cm_event_handler() of iw_cm: each of its ids has it. */
static unsigned long find_iwarp_handler(void)
{
	struct iw_cm_id *cm_id = iw_create_cm_id(NULL, NULL, NULL);
	unsigned long address;

	if (IS_ERR(cm_id))
		return 0;
	address = (unsigned long)cm_id->event_handler;
	iw_destroy_cm_id(cm_id);
	return address;
}

/*
 * Probes __ib_qp_event_handler(), which is found by its name. Another module may have a
 * function of that name, with other arguments, so the probe is enabled after the check.
 */
static bool probe_qp_events(void)
{
	static const char name[] = "__ib_qp_event_handler";
	char symbol[KSYM_SYMBOL_LEN];

	qp_probe.flags = FPROBE_FL_DISABLED;
	if (register_fprobe(&qp_probe, name, NULL))
		return false;
	sprint_symbol_no_offset(symbol, qp_probe.hlist_array->array[0].addr);
	if (qp_probe.hlist_array->size != 1 ||
	    strcmp(symbol, IS_BUILTIN(CONFIG_INFINIBAND) ?
			   name : "__ib_qp_event_handler [ib_core]")) {
		unregister_fprobe(&qp_probe);
		return false;
	}
	enable_fprobe(&qp_probe);
	return true;
}

/* Whether iWARP devices say who ended a connection before rdma_cm says that it has ended. */
static bool iwarp_probed;

/**
 * rpcrdma_cm_is_peer_noted() - tell whether a disconnect of the peer is noted
 * @id: the id, whose device does not change during the call
 *
 * Context: any.
 *
 * Return: whether PEER_CLOSED is noted before DISCONNECTED, if the peer disconnects.
 */
bool rpcrdma_cm_is_peer_noted(const struct rdma_cm_id *id)
{
	return READ_ONCE(iwarp_probed) && id->device && rdma_cap_iw_cm(id->device, id->port_num);
}

/**
 * rpcrdma_cm_watch() - begin to note whether the peer of one of the module's ids disconnects
 * @id: the id, of an iWARP device, whose connection is not made yet; only its address is used
 *
 * Context: process context, may sleep.
 *
 * Return: a value for rpcrdma_cm_unwatch(); or NULL if the disconnect cannot be noted, or if there
 * is no memory.
 */
struct rpcrdma_cm_watched_id *rpcrdma_cm_watch(const struct rdma_cm_id *id)
{
	struct rpcrdma_cm_watched_id *watched;
	unsigned long flags;

	if (!READ_ONCE(iwarp_probed))
		return NULL;
	watched = kzalloc_obj(*watched);
	if (!watched)
		return NULL;
	watched->id = id;
	raw_spin_lock_irqsave(&watched_lock, flags);
	hash_add(watched_ids, &watched->node, (unsigned long)id);
	raw_spin_unlock_irqrestore(&watched_lock, flags);
	return watched;
}

/**
 * rpcrdma_cm_unwatch() - stop noting whether the peer of an id disconnects
 * @watched: the value that rpcrdma_cm_watch() has returned; is freed
 *
 * The id may be destroyed already.
 *
 * Context: any in which kfree() may be called.
 */
void rpcrdma_cm_unwatch(struct rpcrdma_cm_watched_id *watched)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&watched_lock, flags);
	hash_del(&watched->node);
	raw_spin_unlock_irqrestore(&watched_lock, flags);
	kfree(watched);
}

/**
 * rpcrdma_cm_peer_may_have_disconnected() - tell whether the peer may have ended a connection
 * @watched: an id after DISCONNECTED
 *
 * Context: any.
 *
 * Return: false if the device has closed the connection although the peer had not disconnected.
 * Also false if the probe has missed that the peer disconnected. The kernel does not count that,
 * because the probe has no exit handler.
 */
bool rpcrdma_cm_peer_may_have_disconnected(const struct rpcrdma_cm_watched_id *watched)
{
	return !READ_ONCE(iwarp_probed) || READ_ONCE(watched->peer_closed);
}

/**
 * rpcrdma_cm_ends_register() - begin to note why connections end
 *
 * A function that cannot be probed becomes the limit RPCRDMA_CM_LIMIT_CAUSES.
 *
 * Context: process context, may sleep.
 */
void rpcrdma_cm_ends_register(void)
{
	WRITE_ONCE(iwarp_probed, probe(&iwarp_probe, find_iwarp_handler()));
	if (!probe_qp_events())
		rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_CAUSES);
}

/**
 * rpcrdma_cm_ends_unregister() - stop noting why connections end
 *
 * Context: process context, may sleep.
 */
void rpcrdma_cm_ends_unregister(void)
{
	WRITE_ONCE(iwarp_probed, false);
	remove(&iwarp_probe);
	remove(&qp_probe);
}

/* Whether the probes of NFS are registered. The callers hold a mutex. */
static bool registered;

/**
 * rpcrdma_cm_missed_ends() - return how many missed calls of this file's probes were counted
 *
 * It is 0 on kernels that call a probe without an exit handler by ftrace, such as 7.3.
 *
 * Context: any.
 */
unsigned long rpcrdma_cm_missed_ends(void)
{
	return atomic_long_read(&missed) + READ_ONCE(iwarp_probe.nmissed) +
	       READ_ONCE(qp_probe.nmissed) + READ_ONCE(client_probe.nmissed) +
	       READ_ONCE(server_probe.nmissed);
}

/**
 * rpcrdma_cm_nfs_ends_register() - begin to note why the kernel's NFS ends connections
 *
 * Context: process context, may sleep. The module rpcrdma is loaded, and keeps sunrpc.
 */
void rpcrdma_cm_nfs_ends_register(void)
{
	void (*client)(struct rpc_xprt *xprt);
	void (*server)(struct svc_xprt *xprt);

	if (registered)
		return;
	registered = true;
	client = symbol_get(xprt_force_disconnect);
	server = symbol_get(svc_xprt_deferred_close);
	probe(&client_probe, (unsigned long)client);
	probe(&server_probe, (unsigned long)server);
	probe_removals();
	if (client)
		symbol_put(xprt_force_disconnect);
	if (server)
		symbol_put(svc_xprt_deferred_close);
}

/**
 * rpcrdma_cm_nfs_ends_unregister() - stop noting why the kernel's NFS ends connections
 *
 * Context: process context, may sleep.
 */
void rpcrdma_cm_nfs_ends_unregister(void)
{
	if (!registered)
		return;
	registered = false;
	remove(&client_probe);
	remove(&server_probe);
	remove_removals();
}

#endif
