// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the owner of an id by the address of its event handler. The handlers are not
 * exported, so the symbol of an address is looked up. The result is kept until the
 * module with that address is unloaded.
 *
 * The user of a program's id is the one who opened its file: a task can get another user later,
 * but then it cannot write to the file any more, only close it. The structures of rdma_ucm that
 * lead to the file are read by their BTF.
 */

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <rdma/rdma_cm.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_PROBES

/* The module that has a handler; NULL if the handler is built into the kernel. */
#define OWNER(config, module)	(IS_BUILTIN(config) ? NULL : (module))

static const struct {
	const char *symbol;
	const char *module;
	enum rpcrdma_cm_user user;
	bool of_listener;
} owners[] = {
	{ "rpcrdma_cm_event_handler", OWNER(CONFIG_SUNRPC_XPRT_RDMA, "rpcrdma"),
	  RPCRDMA_CM_XPRTRDMA },
	{ "svc_rdma_listen_handler", OWNER(CONFIG_SUNRPC_XPRT_RDMA, "rpcrdma"),
	  RPCRDMA_CM_SVCRDMA, true },
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
 * -ENOENT for the handler of another owner, or -EPERM if that owner is rdma_cm or built in,
 * which cannot be unloaded while there are probes. Returns -EAGAIN for an address without a
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
	return !module || !strcmp(module, "rdma_cm") ? -EPERM : -ENOENT;
}

static void keep_other(unsigned long handler)
{
	unsigned int slot = atomic_fetch_inc(&next_other);

	WRITE_ONCE(others[slot % ARRAY_SIZE(others)], handler);
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
	int owner = find_owner(handler);

	if (owner >= 0)
		WRITE_ONCE(known[owner], handler);
	else if (owner != -EAGAIN)
		keep_other(handler);
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
 * observed. rpcrdma_cm_is_program() looks owners up that are not unloaded, such as rdma_cm,
 * which has an id of its own for each device that a program listens at.
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
		else if (owner == -EPERM)
			keep_other(handler);
	}
	return owner >= 0 && owners[owner].user == RPCRDMA_CM_UCMA;
}

/**
 * rpcrdma_cm_is_accepted() - tell whether the kernel's server has accepted the request of an id
 * @id: the id, whose owner is known, and whose handler mutex the caller holds
 *
 * Context: process context.
 *
 * Return: false if the id is a listener, or still has the handler of its listener.
 */
bool rpcrdma_cm_is_accepted(const struct rdma_cm_id *id)
{
	int owner = find_known((unsigned long)id->event_handler);

	return owner >= 0 && !owners[owner].of_listener;
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

#if RPCRDMA_CM_HAS_BTF

enum {
	CONTEXT_ID,
	CONTEXT_FILE,
	FILE_FILE,
	ALL_MEMBERS,
};

/* These structures are in drivers/infiniband/core/ucma.c. */
static struct rpcrdma_cm_member members[ALL_MEMBERS] = {
	[CONTEXT_ID] = { "ucma_context", "cm_id", sizeof(void *) },
	[CONTEXT_FILE] = { "ucma_context", "file", sizeof(void *) },
	[FILE_FILE] = { "ucma_file", "filp", sizeof(void *) },
};

/*
 * Whether the members are known. While rdma_ucm has ids, this changes only before the probes of
 * rdma_cm are registered, and after they have been removed.
 */
static bool members_known;
static DEFINE_MUTEX(members_mutex);

static void find_members(void)
{
	int i;

	mutex_lock(&members_mutex);
	if (members_known ||
	    rpcrdma_cm_find_members(OWNER(CONFIG_INFINIBAND_USER_ACCESS, "rdma_ucm"), members,
				    ALL_MEMBERS))
		goto unlock;
	for (i = 0; i < ALL_MEMBERS; i++) {
		if (members[i].offset == RPCRDMA_CM_NO_MEMBER)
			goto unlock;
	}
	/* Publishes the offsets before the flag. */
	smp_store_release(&members_known, true);
unlock:
	mutex_unlock(&members_mutex);
}

static void forget_members(void)
{
	mutex_lock(&members_mutex);
	WRITE_ONCE(members_known, false);
	mutex_unlock(&members_mutex);
}

static long copy_member(void **to, const void *from, int member)
{
	return copy_from_kernel_nofault(to, from + members[member].offset, sizeof(*to));
}

/* Finds the credentials with which the file of a program's id was opened. */
static bool find_cred(const struct rdma_cm_id *id, const struct cred **cred)
{
	void *context, *context_id, *back, *ucma_file, *file;

	/* Pairs with find_members(). */
	if (!smp_load_acquire(&members_known)) {
		rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_USERS);
		return false;
	}
	/*
	 * A request has the context of its listener before its handler was called, and after the
	 * handler has refused it.
	 */
	return !get_kernel_nofault(context, &id->context) &&
	       !copy_member(&context_id, context, CONTEXT_ID) &&
	       !get_kernel_nofault(back, &((const struct rdma_cm_id *)context_id)->context) &&
	       back == context &&
	       !copy_member(&ucma_file, context, CONTEXT_FILE) &&
	       !copy_member(&file, ucma_file, FILE_FILE) &&
	       !get_kernel_nofault(*cred, &((const struct file *)file)->f_cred);
}

#else

static void find_members(void)
{
}

static void forget_members(void)
{
}

static bool find_cred(const struct rdma_cm_id *id, const struct cred **cred)
{
	rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_USERS);
	return false;
}

#endif

/* The number of ancestors that a user namespace can have. */
#define LEVEL_MAX	33

/**
 * rpcrdma_cm_uid_of() - find the user of a program's id
 * @id: the id
 *
 * A user may have thousands of uids in a user namespace of his own, so all of them count as that
 * user.
 *
 * Context: any. Nothing is dereferenced that could have been freed.
 *
 * Return: the real uid, in the initial user namespace; U32_MAX if the user is not known. After
 * the id was destroyed, it may be wrong.
 */
u32 rpcrdma_cm_uid_of(const struct rdma_cm_id *id)
{
	struct user_namespace *ns, *parent;
	const struct cred *cred;
	kuid_t uid, owner;
	int level;

	if (!find_cred(id, &cred) || get_kernel_nofault(uid, &cred->uid) ||
	    get_kernel_nofault(ns, &cred->user_ns))
		return U32_MAX;
	for (level = 0; ns != &init_user_ns; level++) {
		if (level == LEVEL_MAX || get_kernel_nofault(parent, &ns->parent) ||
		    get_kernel_nofault(owner, &ns->owner))
			return U32_MAX;
		if (parent == &init_user_ns && !uid_eq(owner, GLOBAL_ROOT_UID))
			uid = owner;
		ns = parent;
	}
	return __kuid_val(uid);
}

static void forget(unsigned long *address, const struct module *mod)
{
	if (within_module(READ_ONCE(*address), mod))
		WRITE_ONCE(*address, 0);
}

/* Clears the addresses of a module that is unloaded: another one may be loaded there. */
static int module_changed(struct notifier_block *nb, unsigned long action, void *data)
{
	const struct module *mod = data;
	bool is_ucm = !strcmp(mod->name, "rdma_ucm");
	size_t i;

	/* Before its device exists. The kernel has read the module's BTF. */
	if (is_ucm && action == MODULE_STATE_COMING)
		find_members();
	if (action != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	if (is_ucm)
		forget_members();
	for (i = 0; i < ARRAY_SIZE(known); i++)
		forget(&known[i], mod);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		forget(&others[i], mod);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = module_changed };

int rpcrdma_cm_owners_register(void)
{
	int ret = register_module_notifier(&module_notifier);

	if (!ret)
		find_members();
	return ret;
}

void rpcrdma_cm_owners_unregister(void)
{
	unregister_module_notifier(&module_notifier);
	forget_members();
}

#endif
