// SPDX-License-Identifier: GPL-2.0
/*
 * The probes on rdma_cm. They are hit by the set-up and the end of connections only:
 *
 *   rdma_connect_locked()        the owner of an id sends REQ. Every way to connect
 *                                calls this function. It fails over soft-iWARP if the
 *                                peer's host refuses.
 *   rdma_accept()                the owner of an id sends REP or RTU. Calls of this
 *                                function and of the one above are reported on entry,
 *                                except those of programs: any user can call them with
 *                                anything, so they are reported when they have succeeded.
 *   rdma_disconnect()            on entry: this end disconnects, first or in response
 *                                to the peer.
 *   rdma_cma:cm_event_handler    before the owner's handler is called: the connection
 *                                has ended. After this, the owner disconnects as well.
 *   rdma_cma:cm_event_done       after the owner's handler was called: the private data
 *                                of the peer. The id of a REQ then has the handler of its
 *                                listener's owner. The kernel's server replaces that when
 *                                it accepts. A wildcard listener fires this only once.
 *   rdma_cma:cm_id_destroy       an id is destroyed; its memory is still valid.
 *
 * rdma_cm holds the handler mutex of the id meanwhile, except for rdma_disconnect() and
 * cm_id_destroy.
 */

#include <linux/atomic.h>
#include <linux/fprobe.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <rdma/rdma_cm.h>

#include "probes.h"

/* The limits that were found since the probes were registered. */
static atomic_t limits = ATOMIC_INIT(0);

/**
 * rpcrdma_cm_limited() - note a limit
 * @limit: the limit
 *
 * Context: any.
 */
void rpcrdma_cm_limited(enum rpcrdma_cm_limit limit)
{
	atomic_or(limit, &limits);
}

/**
 * rpcrdma_cm_limits() - return why ids are not observed, or not everything of them
 *
 * Context: any.
 *
 * Return: bits of enum rpcrdma_cm_limit.
 */
u32 rpcrdma_cm_limits(void)
{
	u32 found = atomic_read(&limits);

	if (!IS_ENABLED(CONFIG_FPROBE))
		found |= RPCRDMA_CM_LIMIT_FPROBE;
	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		found |= RPCRDMA_CM_LIMIT_TRACEPOINTS;
	if (!IS_ENABLED(CONFIG_KALLSYMS))
		found |= RPCRDMA_CM_LIMIT_KALLSYMS;
	if (!IS_ENABLED(CONFIG_DEBUG_INFO_BTF) || !IS_ENABLED(CONFIG_BPF_SYSCALL))
		found |= RPCRDMA_CM_LIMIT_BTF;
	return found;
}

#if RPCRDMA_CM_HAS_PROBES

/* The private structure of rdma_cm. Its first member is the struct rdma_cm_id. */
struct rdma_id_private;

static void copy_address(struct sockaddr_in6 *to, const struct sockaddr *from)
{
	if (from->sa_family == AF_INET6)
		memcpy(to, from, sizeof(struct sockaddr_in6));
	else if (from->sa_family == AF_INET)
		memcpy(to, from, sizeof(struct sockaddr_in));
}

/* Returns the port of an address, or 0. */
static u16 port_of(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)address)->sin_port);
	if (address->sa_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	return 0;
}

/* Describes an id that the search found. Returns whether it is a connection that has not ended. */
static bool describe_existing(struct rpcrdma_cm_observation *observation,
			      const struct rpcrdma_cm_event *event)
{
	int ret;

	switch (event->user) {
	case RPCRDMA_CM_XPRTRDMA:
		ret = rpcrdma_cm_xprtrdma_describe(observation, event->id);
		break;
	case RPCRDMA_CM_SVCRDMA:
		/* The probes see rdma_accept(). */
		if (!rpcrdma_cm_is_accepted(event->id))
			return false;
		ret = rpcrdma_cm_svcrdma_describe(observation, event->id);
		break;
	case RPCRDMA_CM_UCMA:
		return true;
	default:
		return false;
	}
	observation->opaque = ret == -EOPNOTSUPP;
	return event->id->qp && (!ret || observation->opaque);
}

/*
 * Gathers everything that is known of the id of @event. Returns whether the id is a
 * connection, or about to become one.
 */
static bool describe(struct rpcrdma_cm_observation *observation,
		     const struct rpcrdma_cm_event *event)
{
	const struct rdma_cm_id *id = event->id;

	*observation = (struct rpcrdma_cm_observation) {
		.transport = RPCRDMA_CM_OTHER,
		.send_with_invalidate = -1,
	};
	copy_address(&observation->local, shim_local_addr(id));
	copy_address(&observation->remote, shim_remote_addr(id));
	/* A device is not freed while an id is bound to it. */
	if (id->device) {
		observation->transport = shim_transport(id->device, id->port_num);
		shim_device_name(id->device, observation->device);
	}
	switch (event->kind) {
	case RPCRDMA_CM_CONNECT:
	case RPCRDMA_CM_ESTABLISHED:
		if (event->user == RPCRDMA_CM_XPRTRDMA)
			rpcrdma_cm_xprtrdma_describe(observation, id);
		return true;
	case RPCRDMA_CM_ACCEPT:
		if (event->user == RPCRDMA_CM_SVCRDMA)
			rpcrdma_cm_svcrdma_describe(observation, id);
		return true;
	case RPCRDMA_CM_EXISTING:
		return describe_existing(observation, event);
	default:
		return true;
	}
}

static void set_program(struct rpcrdma_cm_event *event, struct task_struct *task)
{
	event->pid = task_tgid_nr(task);
	get_task_comm(event->comm, task);
}

/*
 * Notes an event. Everything is read here: nothing of the id may be touched after its end
 * has been noted. @task is that of a program, if it is known.
 */
static void note(const struct rdma_cm_id *id, enum rpcrdma_cm_user user,
		 enum rpcrdma_cm_event_kind kind, int result,
		 const struct rdma_conn_param *param, struct task_struct *task)
{
	struct rpcrdma_cm_event *event;
	unsigned long flags;

	event = rpcrdma_cm_note_begins(id, user, kind, &flags);
	if (!event)
		return;
	event->result = result;
	switch (kind) {
	case RPCRDMA_CM_REQUEST:
	case RPCRDMA_CM_CONNECT:
	case RPCRDMA_CM_EXISTING:
		event->local_port = port_of(shim_local_addr(id));
		event->remote_port = port_of(shim_remote_addr(id));
		break;
	default:
		break;
	}
	if (task)
		set_program(event, task);
	if (param && param->private_data) {
		event->len = param->private_data_len;
		memcpy(event->private_data, param->private_data, event->len);
	}
	if (kind != RPCRDMA_CM_DISCONNECT && kind != RPCRDMA_CM_DESTROYED)
		event->described = describe(&event->observation, event);
	rpcrdma_cm_note_ends(flags);
}

static void report(const struct rdma_cm_id *id, enum rpcrdma_cm_user user,
		   enum rpcrdma_cm_event_kind kind, int result,
		   const struct rdma_conn_param *param)
{
	bool own_call = kind == RPCRDMA_CM_CONNECT || kind == RPCRDMA_CM_ACCEPT;

	/* A program connects and accepts by itself. */
	note(id, user, kind, result, param,
	     user == RPCRDMA_CM_UCMA && own_call ? current : NULL);
}

/**
 * rpcrdma_cm_note_existing() - note an id that the search found
 * @id: the id, whose handler mutex the caller holds
 * @user: its owner
 * @task: a task of the program that owns it, or NULL
 *
 * Context: process context.
 */
void rpcrdma_cm_note_existing(const struct rdma_cm_id *id, enum rpcrdma_cm_user user,
			      struct task_struct *task)
{
	note(id, user, RPCRDMA_CM_EXISTING, 0, NULL, task);
}

static void event_done(void *data, const struct rdma_id_private *id_priv,
		       const struct rdma_cm_event *event, int result)
{
	const struct rdma_cm_id *id = (const struct rdma_cm_id *)id_priv;
	const struct rdma_conn_param *param = NULL;
	enum rpcrdma_cm_event_kind kind;
	enum rpcrdma_cm_user user;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		kind = RPCRDMA_CM_REQUEST;
		param = &event->param.conn;
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		kind = RPCRDMA_CM_RESPONSE;
		param = &event->param.conn;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		kind = RPCRDMA_CM_ESTABLISHED;
		param = &event->param.conn;
		break;
	case RDMA_CM_EVENT_REJECTED:
		kind = RPCRDMA_CM_REJECTED;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		kind = RPCRDMA_CM_FAILED;
		break;
	default:
		return;
	}
	if (rpcrdma_cm_user_of(id, &user))
		report(id, user, kind, result, param);
}

static void event_begins(void *data, const struct rdma_id_private *id_priv,
			 const struct rdma_cm_event *event)
{
	const struct rdma_cm_id *id = (const struct rdma_cm_id *)id_priv;
	enum rpcrdma_cm_event_kind kind;
	enum rpcrdma_cm_user user;
	int result = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_DISCONNECTED:
		kind = RPCRDMA_CM_DISCONNECTED;
		result = rpcrdma_cm_is_peer_noted(id);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kind = RPCRDMA_CM_DEVICE_REMOVED;
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		kind = RPCRDMA_CM_ADDRESS_CHANGED;
		break;
	default:
		return;
	}
	if (rpcrdma_cm_user_of(id, &user))
		report(id, user, kind, result, NULL);
}

static void id_destroyed(void *data, const struct rdma_id_private *id_priv)
{
	const struct rdma_cm_id *id = (const struct rdma_cm_id *)id_priv;
	enum rpcrdma_cm_user user = RPCRDMA_CM_XPRTRDMA;

	/*
	 * xprtrdma drops the reference on its module before it destroys an id. If the module
	 * has been unloaded, the owner cannot be looked up. So the end of every id is
	 * reported, except those that are known to have another owner.
	 */
	if (rpcrdma_cm_is_other(id))
		return;
	if (rpcrdma_cm_is_program(id))
		user = RPCRDMA_CM_UCMA;
	else if (rpcrdma_cm_is_other(id))
		return;
	report(id, user, RPCRDMA_CM_DESTROYED, 0, NULL);
}

/* A call of an owner, until it returns. */
struct owner_call {
	const struct rdma_cm_id *id;
	const struct rdma_conn_param *param;
	enum rpcrdma_cm_user user;
};

/* Returns 0 if @call has been set, so that the return of the call is of interest. */
static int call_begins(struct ftrace_regs *regs, enum rpcrdma_cm_event_kind kind,
		       struct owner_call *call)
{
	const struct rdma_cm_id *id = (const void *)ftrace_regs_get_argument(regs, 0);
	const struct rdma_conn_param *param = (const void *)ftrace_regs_get_argument(regs, 1);
	enum rpcrdma_cm_user user;

	if (!rpcrdma_cm_user_of(id, &user))
		return 1;
	*call = (struct owner_call) { .id = id, .param = param, .user = user };
	if (user == RPCRDMA_CM_UCMA)
		return 0;
	report(id, user, kind, 0, param);
	return kind != RPCRDMA_CM_CONNECT;
}

/* The caller keeps the id and the parameters until the call has returned. */
static void call_ends(struct ftrace_regs *regs, enum rpcrdma_cm_event_kind kind,
		      const struct owner_call *call)
{
	int ret = ftrace_regs_get_return_value(regs);

	if (call->user != RPCRDMA_CM_UCMA) {
		if (ret)
			report(call->id, call->user, RPCRDMA_CM_CONNECT_FAILED, ret, NULL);
	} else if (!ret) {
		report(call->id, call->user, kind, 0, call->param);
	}
}

static int connect_called(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			  struct ftrace_regs *regs, void *call)
{
	return call_begins(regs, RPCRDMA_CM_CONNECT, call);
}

static void connect_returns(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			    struct ftrace_regs *regs, void *call)
{
	call_ends(regs, RPCRDMA_CM_CONNECT, call);
}

static int accept_called(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			 struct ftrace_regs *regs, void *call)
{
	return call_begins(regs, RPCRDMA_CM_ACCEPT, call);
}

static void accept_returns(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			   struct ftrace_regs *regs, void *call)
{
	call_ends(regs, RPCRDMA_CM_ACCEPT, call);
}

static int disconnect_called(struct fprobe *fp, unsigned long ip, unsigned long ret_ip,
			     struct ftrace_regs *regs, void *entry_data)
{
	const struct rdma_cm_id *id = (const void *)ftrace_regs_get_argument(regs, 0);
	enum rpcrdma_cm_user user;

	if (rpcrdma_cm_user_of(id, &user))
		report(id, user, RPCRDMA_CM_DISCONNECT, 0, NULL);
	return 0;
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;
} tracepoints[] = {
	/* Registered in this order: an id whose end is not seen would be listed for ever. */
	{ .name = "cm_id_destroy", .probe = id_destroyed },
	{ .name = "cm_event_done", .probe = event_done },
	{ .name = "cm_event_handler", .probe = event_begins },
};

/* Registered by address, because other modules may have functions of these names. */
static struct {
	unsigned long address;
	struct fprobe fprobe;
} calls[] = {
	{ (unsigned long)rdma_accept, {
		.entry_handler = accept_called,
		.exit_handler = accept_returns,
		.entry_data_size = sizeof(struct owner_call),
	} },
	{ (unsigned long)rdma_connect_locked, {
		.entry_handler = connect_called,
		.exit_handler = connect_returns,
		.entry_data_size = sizeof(struct owner_call),
	} },
	{ (unsigned long)rdma_disconnect, { .entry_handler = disconnect_called } },
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

/*
 * Finds the tracepoints. They stay valid: rdma_cm is built in, or it is a module that
 * cannot be unloaded before this one.
 */
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

static void remove_probes(size_t points, size_t probes)
{
	rpcrdma_cm_search_stop(true);
	while (probes--)
		unregister_fprobe(&calls[probes].fprobe);
	while (points--)
		tracepoint_probe_unregister(tracepoints[points].tracepoint,
					    tracepoints[points].probe, NULL);
	tracepoint_synchronize_unregister();
	rpcrdma_cm_ends_unregister();
	rpcrdma_cm_events_unregister();
	rpcrdma_cm_transports_unregister();
	rpcrdma_cm_owners_unregister();
}

/**
 * rpcrdma_cm_probes_register() - begin to report events
 * @fn: is called for each event, one at a time, in process context
 * @data: is passed to @fn
 *
 * Context: process context, may sleep.
 *
 * Return: 0; -ENOMEM; or another negative errno if the kernel lacks an option, a tracepoint or a
 * function that the probes need, or if ftrace refuses a probe.
 */
int rpcrdma_cm_probes_register(rpcrdma_cm_event_fn fn, void *data)
{
	size_t points = 0, probes = 0;
	int ret;

	atomic_set(&limits, 0);
	rpcrdma_cm_search_stop(false);
	ret = find_tracepoints();
	if (ret)
		return ret;
	/* Without the entries, the search says so. */
	rpcrdma_cm_find_entries();
	ret = rpcrdma_cm_owners_register();
	if (ret)
		return ret;
	ret = rpcrdma_cm_transports_register();
	if (ret)
		goto no_transports;
	ret = rpcrdma_cm_events_register(fn, data);
	if (ret)
		goto no_events;
	rpcrdma_cm_ends_register();
	for (; points < ARRAY_SIZE(tracepoints); points++) {
		ret = tracepoint_probe_register(tracepoints[points].tracepoint,
						tracepoints[points].probe, NULL);
		if (ret)
			goto undo;
	}
	for (; probes < ARRAY_SIZE(calls); probes++) {
		ret = register_fprobe_ips(&calls[probes].fprobe, &calls[probes].address, 1);
		if (ret)
			goto undo;
	}
	return 0;

undo:
	remove_probes(points, probes);
	return ret;

no_events:
	rpcrdma_cm_transports_unregister();
no_transports:
	rpcrdma_cm_owners_unregister();
	return ret;
}

/**
 * rpcrdma_cm_probes_unregister() - stop reporting events
 *
 * When this returns, no call of the function is running, and none follows.
 *
 * Context: process context, may sleep.
 */
void rpcrdma_cm_probes_unregister(void)
{
	remove_probes(ARRAY_SIZE(tracepoints), ARRAY_SIZE(calls));
}

/**
 * rpcrdma_cm_missed_calls() - return how many missed calls of the probes the kernel has counted
 *
 * It counts a call only if a probe has an exit handler, and the task's stack of the function graph
 * tracer has room for the frame of the call, but not for its data. It does not count the calls of
 * a task without such a stack, for which there was no memory, and those that find the stack full.
 * It counts none of a probe without an exit handler.
 *
 * Context: any.
 */
unsigned long rpcrdma_cm_missed_calls(void)
{
	unsigned long missed = rpcrdma_cm_missed_ends();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		missed += READ_ONCE(calls[i].fprobe.nmissed);
	return missed;
}

#else

int rpcrdma_cm_probes_register(rpcrdma_cm_event_fn fn, void *data)
{
	return -EOPNOTSUPP;
}

void rpcrdma_cm_probes_unregister(void)
{
}

unsigned long rpcrdma_cm_missed_calls(void)
{
	return 0;
}

void rpcrdma_cm_search(void)
{
}

void rpcrdma_cm_events_flush(void)
{
}

bool rpcrdma_cm_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id)
{
	return false;
}

struct rpcrdma_cm_watched_id *rpcrdma_cm_watch(const struct rdma_cm_id *id)
{
	return NULL;
}

void rpcrdma_cm_unwatch(struct rpcrdma_cm_watched_id *watched)
{
}

bool rpcrdma_cm_peer_may_have_disconnected(const struct rpcrdma_cm_watched_id *watched)
{
	return true;
}

#endif
