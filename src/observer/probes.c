// SPDX-License-Identifier: GPL-2.0
/*
 * Where the ids of rdma_cm are watched, in the set-up and the end of
 * connections only:
 *
 *   rdma_connect_locked(),       what an id's owner sends, on their entry;
 *   rdma_accept()                all that connects goes through the former
 *   rdma_cma:cm_event_done       what the peer sent, when the owner has seen it:
 *                                the id has its final handler by then, and
 *                                wildcard listeners fire it once only
 *   rdma_cma:cm_id_destroy       the end of an id, before its memory goes
 *
 * rdma_cm holds the id's handler mutex around the first three.
 */

#include <linux/fprobe.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/tracepoint.h>
#include <linux/sunrpc/svc_rdma.h>
#include <rdma/rdma_cm.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_PROBES

/* rdma_cm's own view of an id, whose first member is the view of all others. */
struct rdma_id_private;

static rpcrdma_cm_seen_fn seen_fn;
static void *seen_data;

/* Whose handler an id has, by the name of the handler: none is exported. */
bool rpcrdma_cm_user_of(const struct rdma_cm_id *id, enum rpcrdma_cm_user *user)
{
	static const struct {
		const char *handler;
		enum rpcrdma_cm_user user;
	} handlers[] = {
		{ "rpcrdma_cm_event_handler", RPCRDMA_CM_XPRTRDMA },
		{ "svc_rdma_listen_handler", RPCRDMA_CM_SVCRDMA },
		{ "svc_rdma_cma_handler", RPCRDMA_CM_SVCRDMA },
		{ "ucma_event_handler", RPCRDMA_CM_UCMA },
	};
	unsigned long handler = (unsigned long)READ_ONCE(id->event_handler);
	char name[KSYM_SYMBOL_LEN];
	size_t i;

	if (id->ps != RDMA_PS_TCP || id->qp_type != IB_QPT_RC ||
	    within_module_core(handler, THIS_MODULE))
		return false;

	sprint_symbol_no_offset(name, handler);
	/* Less what compilers add to a name, and the name of its module. */
	name[strcspn(name, ". ")] = '\0';
	for (i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!strcmp(name, handlers[i].handler)) {
			*user = handlers[i].user;
			return true;
		}
	}
	return false;
}

static void copy_address(struct sockaddr_in6 *to, const struct sockaddr *from)
{
	if (from->sa_family == AF_INET6)
		memcpy(to, from, sizeof(struct sockaddr_in6));
	else if (from->sa_family == AF_INET)
		memcpy(to, from, sizeof(struct sockaddr_in));
}

/*
 * What svcrdma goes by. It makes the queue pair of an id that has a transport
 * of its own, and frees the transport after the id.
 */
static void describe_server(struct rpcrdma_cm_seen *seen, const struct rdma_cm_id *id)
{
	const struct svcxprt_rdma *xprt;

	if (!READ_ONCE(id->qp))
		return;
	xprt = id->context;
	if (xprt->sc_cm_id != id || test_bit(XPT_DEAD, &xprt->sc_xprt.xpt_flags))
		return;
	seen->inline_send = xprt->sc_max_req_size;
	seen->inline_receive = xprt->sc_max_req_size;
	seen->send_with_invalidate = xprt->sc_snd_w_inv;
}

/* Says all that is known of an id, which must not go during the call. */
void rpcrdma_cm_describe(struct rpcrdma_cm_seen *seen, const struct rdma_cm_id *id,
			 enum rpcrdma_cm_user user, enum rpcrdma_cm_happening happening)
{
	*seen = (struct rpcrdma_cm_seen) {
		.id = id,
		.user = user,
		.happening = happening,
		.transport = RPCRDMA_CM_OTHER,
		.send_with_invalidate = -1,
	};
	copy_address(&seen->local, shim_local_addr(id));
	copy_address(&seen->remote, shim_remote_addr(id));
	/* A device stays as long as there are ids that are bound to it. */
	if (id->device) {
		seen->transport = shim_transport(id->device, id->port_num);
		shim_device_name(id->device, seen->device);
	}
	switch (happening) {
	case RPCRDMA_CM_CONNECT:
	case RPCRDMA_CM_ESTABLISHED:
		if (user == RPCRDMA_CM_XPRTRDMA)
			rpcrdma_cm_xprtrdma_describe(seen, id);
		break;
	case RPCRDMA_CM_ACCEPT:
	case RPCRDMA_CM_EXISTING:
		if (user == RPCRDMA_CM_SVCRDMA)
			describe_server(seen, id);
		break;
	default:
		break;
	}
}

static void tell(const struct rdma_cm_id *id, enum rpcrdma_cm_user user,
		 enum rpcrdma_cm_happening happening, int result,
		 const struct rdma_conn_param *param)
{
	struct rpcrdma_cm_seen seen;

	rpcrdma_cm_describe(&seen, id, user, happening);
	seen.result = result;
	if (param && param->private_data) {
		seen.len = param->private_data_len;
		memcpy(seen.private_data, param->private_data, seen.len);
	}
	/* A program connects and accepts by itself. */
	if (user == RPCRDMA_CM_UCMA &&
	    (happening == RPCRDMA_CM_CONNECT || happening == RPCRDMA_CM_ACCEPT)) {
		seen.pid = task_tgid_nr(current);
		get_task_comm(seen.comm, current);
	}
	seen_fn(seen_data, &seen);
}

static void event_done(void *data, const struct rdma_id_private *id_priv,
		       const struct rdma_cm_event *event, int result)
{
	const struct rdma_cm_id *id = (const struct rdma_cm_id *)id_priv;
	const struct rdma_conn_param *param = NULL;
	enum rpcrdma_cm_happening happening;
	enum rpcrdma_cm_user user;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		happening = RPCRDMA_CM_REQUEST;
		param = &event->param.conn;
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		happening = RPCRDMA_CM_RESPONSE;
		param = &event->param.conn;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		happening = RPCRDMA_CM_ESTABLISHED;
		param = &event->param.conn;
		break;
	case RDMA_CM_EVENT_REJECTED:
		happening = RPCRDMA_CM_REJECTED;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		happening = RPCRDMA_CM_FAILED;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		happening = RPCRDMA_CM_DISCONNECTED;
		break;
	default:
		return;
	}
	if (rpcrdma_cm_user_of(id, &user))
		tell(id, user, happening, result, param);
}

static void id_destroyed(void *data, const struct rdma_id_private *id_priv)
{
	struct rpcrdma_cm_seen seen = { .id = id_priv, .happening = RPCRDMA_CM_DESTROYED };

	seen_fn(seen_data, &seen);
}

static void call_seen(struct ftrace_regs *regs, enum rpcrdma_cm_happening happening)
{
	const struct rdma_cm_id *id = (const void *)ftrace_regs_get_argument(regs, 0);
	const struct rdma_conn_param *param = (const void *)ftrace_regs_get_argument(regs, 1);
	enum rpcrdma_cm_user user;

	if (rpcrdma_cm_user_of(id, &user))
		tell(id, user, happening, 0, param);
}

static int connect_called(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			  struct ftrace_regs *regs, void *entry_data)
{
	call_seen(regs, RPCRDMA_CM_CONNECT);
	return 0;
}

static int accept_called(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			 struct ftrace_regs *regs, void *entry_data)
{
	call_seen(regs, RPCRDMA_CM_ACCEPT);
	return 0;
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;
} tracepoints[] = {
	/* In this order: an id whose end is missed would be listed for ever. */
	{ .name = "cm_id_destroy", .probe = id_destroyed },
	{ .name = "cm_event_done", .probe = event_done },
};

static struct {
	const char *name;
	struct fprobe fprobe;
} calls[] = {
	{ .name = "rdma_accept", .fprobe.entry_handler = accept_called },
	{ .name = "rdma_connect_locked", .fprobe.entry_handler = connect_called },
};

static void note_tracepoint(struct tracepoint *tracepoint, void *unused)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tracepoints); i++) {
		if (!strcmp(tracepoint->name, tracepoints[i].name))
			tracepoints[i].tracepoint = tracepoint;
	}
}

static int note_module(struct notifier_block *nb, unsigned long action, void *data)
{
	struct module *mod = ((struct tp_module *)data)->mod;
	unsigned int i;

	if (action != MODULE_STATE_COMING || strcmp(mod->name, "rdma_cm"))
		return NOTIFY_DONE;
	for (i = 0; i < mod->num_tracepoints; i++)
		note_tracepoint(tracepoint_ptr_deref(&mod->tracepoints_ptrs[i]), NULL);
	return NOTIFY_OK;
}

/* rdma_cm is built in, or a module that this one needs: what is found stays. */
static int find_tracepoints(void)
{
	struct notifier_block nb = { .notifier_call = note_module };
	size_t i;
	int ret;

	for_each_kernel_tracepoint(note_tracepoint, NULL);
	ret = register_tracepoint_module_notifier(&nb);
	if (ret)
		return ret;
	unregister_tracepoint_module_notifier(&nb);

	for (i = 0; i < ARRAY_SIZE(tracepoints); i++) {
		if (!tracepoints[i].tracepoint)
			return -ENOENT;
	}
	return 0;
}

/**
 * rpcrdma_cm_probes_register() - begin to tell what happens
 * @fn: is called in atomic context, by several processors at a time
 * @data: is given to @fn
 *
 * Return: 0, -EBUSY where it is done already, or another negative errno where
 * the kernel has not what it takes.
 */
int rpcrdma_cm_probes_register(rpcrdma_cm_seen_fn fn, void *data)
{
	size_t points = 0, probes = 0;
	int ret;

	if (seen_fn)
		return -EBUSY;
	ret = find_tracepoints();
	if (ret)
		return ret;
	ret = rpcrdma_cm_xprtrdma_register();
	if (ret)
		return ret;

	seen_fn = fn;
	seen_data = data;
	for (; points < ARRAY_SIZE(tracepoints); points++) {
		ret = tracepoint_probe_register(tracepoints[points].tracepoint,
						tracepoints[points].probe, NULL);
		if (ret)
			goto undo;
	}
	for (; probes < ARRAY_SIZE(calls); probes++) {
		ret = register_fprobe_syms(&calls[probes].fprobe, &calls[probes].name, 1);
		if (ret)
			goto undo;
	}
	return 0;

undo:
	while (probes--)
		unregister_fprobe(&calls[probes].fprobe);
	while (points--)
		tracepoint_probe_unregister(tracepoints[points].tracepoint,
					    tracepoints[points].probe, NULL);
	tracepoint_synchronize_unregister();
	rpcrdma_cm_xprtrdma_unregister();
	seen_fn = NULL;
	return ret;
}

/**
 * rpcrdma_cm_probes_unregister() - end it
 *
 * When it returns, the function is not running and will not be called again.
 */
void rpcrdma_cm_probes_unregister(void)
{
	size_t i;

	for (i = ARRAY_SIZE(calls); i--;)
		unregister_fprobe(&calls[i].fprobe);
	for (i = ARRAY_SIZE(tracepoints); i--;)
		tracepoint_probe_unregister(tracepoints[i].tracepoint,
					    tracepoints[i].probe, NULL);
	tracepoint_synchronize_unregister();
	rpcrdma_cm_xprtrdma_unregister();
	seen_fn = NULL;
}

#else

int rpcrdma_cm_probes_register(rpcrdma_cm_seen_fn fn, void *data)
{
	return -EOPNOTSUPP;
}

void rpcrdma_cm_probes_unregister(void)
{
}

void rpcrdma_cm_tell_existing(rpcrdma_cm_seen_fn fn, void *data)
{
}

#endif
