// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the owner of an id by the address of its event handler. The handlers are not
 * exported, so the symbol of an address is looked up. The result is kept until the
 * module with that address is unloaded.
 */

#include <linux/atomic.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <rdma/rdma_cm.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_PROBES

/* The module that has a handler; NULL if the handler is built into the kernel. */
#define OWNER(config, module)	(IS_BUILTIN(config) ? NULL : (module))

static const struct {
	const char *symbol;
	const char *module;
	enum rpcrdma_cm_user user;
} owners[] = {
	{ "rpcrdma_cm_event_handler", OWNER(CONFIG_SUNRPC_XPRT_RDMA, "rpcrdma"),
	  RPCRDMA_CM_XPRTRDMA },
	{ "svc_rdma_listen_handler", OWNER(CONFIG_SUNRPC_XPRT_RDMA, "rpcrdma"),
	  RPCRDMA_CM_SVCRDMA },
	{ "svc_rdma_cma_handler", OWNER(CONFIG_SUNRPC_XPRT_RDMA, "rpcrdma"),
	  RPCRDMA_CM_SVCRDMA },
	{ "ucma_event_handler", OWNER(CONFIG_INFINIBAND_USER_ACCESS, "rdma_ucm"),
	  RPCRDMA_CM_UCMA },
};

/*
 * The addresses of the handlers of owners[], and of some handlers that are known to be
 * those of other owners. 0 stands for an address that is not known.
 */
static unsigned long known[ARRAY_SIZE(owners)];
static unsigned long others[32];
static atomic_t next_other = ATOMIC_INIT(0);

/*
 * Returns the index into owners[] of a handler, by its symbol: "name" or
 * "name [module]". A suffix that the compiler added to the name begins with a dot. The
 * module has to match, too: other modules may have functions of the same name. Returns
 * -ENOENT for the handler of another owner. Returns -EAGAIN for an address without a
 * symbol, which is printed as a number.
 */
static int find_owner(unsigned long handler)
{
	char symbol[KSYM_SYMBOL_LEN];
	char *module;
	size_t i;

	sprint_symbol_no_offset(symbol, handler);
	if (symbol[0] == '0')
		return -EAGAIN;
	module = strstr(symbol, " [");
	if (module) {
		*module = '\0';
		module += strlen(" [");
		module[strcspn(module, " ]")] = '\0';
	}
	symbol[strcspn(symbol, ".")] = '\0';

	for (i = 0; i < ARRAY_SIZE(owners); i++) {
		if (strcmp(symbol, owners[i].symbol))
			continue;
		if (owners[i].module ? module && !strcmp(module, owners[i].module) : !module)
			return i;
	}
	if (module && (!strcmp(module, "rpcrdma") || !strcmp(module, "rdma_ucm")))
		rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_SYMBOLS);
	return -ENOENT;
}

/*
 * Looks an address up, and keeps the result. Usually the owner's module cannot be unloaded
 * meanwhile, because an id of it exists. xprtrdma may be an exception: it drops the
 * reference on its module before it destroys an id. An address that is stored after
 * module_changed() has cleared those of its module is harmless: it only decides which
 * structures are read, and these are read with functions that cannot fault.
 */
static int look_up(unsigned long handler)
{
	unsigned int slot;
	int owner;

	owner = find_owner(handler);
	if (owner >= 0) {
		WRITE_ONCE(known[owner], handler);
	} else if (owner == -ENOENT) {
		slot = atomic_fetch_inc(&next_other);
		WRITE_ONCE(others[slot % ARRAY_SIZE(others)], handler);
	}
	return owner;
}

/* Returns the index into owners[], or -ENOENT. */
static int find_known(unsigned long handler)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (READ_ONCE(known[i]) == handler)
			return i;
	}
	return -ENOENT;
}

static bool is_other(unsigned long handler)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		if (READ_ONCE(others[i]) == handler)
			return true;
	}
	return false;
}

/* Whether the id is one of a reliable connection. Other ids are not observed. */
static bool is_connection(const struct rdma_cm_id *id)
{
	return id->ps == RDMA_PS_TCP && id->qp_type == IB_QPT_RC;
}

/**
 * rpcrdma_cm_is_other() - tell whether an id is known not to be observed
 * @id: the id, which must not be destroyed during the call; the module of its owner may
 *	be unloaded already
 *
 * Context: any.
 *
 * Return: true if the owner of the id has been looked up before, and its ids are not
 * observed.
 */
bool rpcrdma_cm_is_other(const struct rdma_cm_id *id)
{
	unsigned long handler = (unsigned long)READ_ONCE(id->event_handler);

	/* The ids of programs are many, and others[] is the longer one. */
	return !is_connection(id) || (find_known(handler) < 0 && is_other(handler));
}

/**
 * rpcrdma_cm_is_program() - tell whether a program owns an id
 * @id: the id, as for rpcrdma_cm_is_other()
 *
 * Context: any.
 *
 * Return: true if the id is one of rdma_ucm, which is not unloaded while it has ids.
 */
bool rpcrdma_cm_is_program(const struct rdma_cm_id *id)
{
	unsigned long handler = (unsigned long)READ_ONCE(id->event_handler);
	int owner = find_known(handler);

	if (owner < 0) {
		owner = find_owner(handler);
		if (owner >= 0 && owners[owner].user == RPCRDMA_CM_UCMA)
			WRITE_ONCE(known[owner], handler);
	}
	return owner >= 0 && owners[owner].user == RPCRDMA_CM_UCMA;
}

/**
 * rpcrdma_cm_user_of() - find the owner of an id
 * @id: the id, which must not be destroyed during the call; nor may the module of its
 *	owner be unloaded
 * @user: is set to the owner if its ids are observed
 *
 * Context: any.
 *
 * Return: whether the ids of the owner are observed.
 */
bool rpcrdma_cm_user_of(const struct rdma_cm_id *id, enum rpcrdma_cm_user *user)
{
	unsigned long handler = (unsigned long)READ_ONCE(id->event_handler);
	int owner;

	if (!handler || !is_connection(id))
		return false;

	owner = find_known(handler);
	if (owner < 0 && !is_other(handler))
		owner = look_up(handler);
	if (owner < 0)
		return false;
	*user = owners[owner].user;
	return true;
}

/**
 * rpcrdma_cm_known_user_of() - find the owner of an id that may have been destroyed
 * @id: the id
 * @user: is set to the owner if it has been looked up before, and its ids are observed
 *
 * Context: any.
 *
 * Return: whether @user is set. After the id was destroyed, it may be wrong.
 */
bool rpcrdma_cm_known_user_of(const struct rdma_cm_id *id, enum rpcrdma_cm_user *user)
{
	rdma_cm_event_handler handler;
	int owner;

	if (get_kernel_nofault(handler, &id->event_handler) || !handler)
		return false;
	owner = find_known((unsigned long)handler);
	if (owner < 0)
		return false;
	*user = owners[owner].user;
	return true;
}

static void forget(unsigned long *address, const struct module *mod)
{
	if (within_module(READ_ONCE(*address), mod))
		WRITE_ONCE(*address, 0);
}

/* Clears the addresses of a module that is unloaded: another one may be loaded there. */
static int module_changed(struct notifier_block *nb, unsigned long action, void *data)
{
	size_t i;

	if (action != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	for (i = 0; i < ARRAY_SIZE(known); i++)
		forget(&known[i], data);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		forget(&others[i], data);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = module_changed };

int rpcrdma_cm_owners_register(void)
{
	return register_module_notifier(&module_notifier);
}

void rpcrdma_cm_owners_unregister(void)
{
	unregister_module_notifier(&module_notifier);
}

#endif
