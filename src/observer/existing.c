// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the connections that are older than the probes, by the resource tracker. It
 * has an entry for each id that is bound to a device. An id is not destroyed while a
 * reference to its entry is held.
 */

#include <linux/delay.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <rdma/rdma_cm.h>
#include <rdma/restrack.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_PROBES

/*
 * The tracker numbers entries in increasing order, over 32 bits. Higher numbers are not looked
 * at, because that would take minutes.
 */
#define NUMBERS_MAX		(16 * 1024 * 1024)

/* How often a device is looked at if ids are missing: they may have been destroyed meanwhile. */
#define LOOKS			2

/* Private members of an id are searched for up to this offset, in bytes. */
#define ID_SIZE_MAX		2048

/*
 * How often the handler mutexes of programs' ids are tried again in one search, and the pause
 * before that. How long one is held may depend on the program.
 */
#define PAUSES_MAX		500
#define PAUSE_MS		10

/* Whether no more ids are looked at, because the probes are being removed. */
static bool stopping;

struct known_device {
	struct llist_node node;
	struct ib_device *ib;
};

static int never_called(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* The offsets from an id to its tracker entry and to its handler mutex, in bytes; 0: not known. */
static size_t entry_offset;
static size_t mutex_offset;

#ifdef CONFIG_PREEMPT_RT
#define OWNER_OFFSET	offsetof(struct mutex, rtmutex.owner)
#else
#define OWNER_OFFSET	offsetof(struct mutex, owner)
#endif

static struct mutex *mutex_at(struct rdma_cm_id *id, size_t offset)
{
	return (void *)id + offset - OWNER_OFFSET;
}

/* Finds the handler mutex of @id, which nobody else uses: this task owns it while it is locked. */
static void find_mutex(struct rdma_cm_id *id)
{
	unsigned long owner;
	size_t offset;

	rdma_lock_handler(id);
	for (offset = sizeof(*id); offset < ID_SIZE_MAX; offset += sizeof(void *)) {
		if (get_kernel_nofault(owner, (unsigned long *)((void *)id + offset)))
			break;
		/* The lowest bits are flags. */
		if ((owner & ~7UL) == (unsigned long)current)
			break;
	}
	rdma_unlock_handler(id);
	if (offset < ID_SIZE_MAX &&
	    !get_kernel_nofault(owner, (unsigned long *)((void *)id + offset)) && !owner)
		mutex_offset = offset;
}

/**
 * rpcrdma_cm_find_entries() - find the offsets from an id to its tracker entry and to its mutex
 *
 * They are in struct rdma_id_private. Only a private header of rdma_cm declares it (cma_priv.h),
 * so an id is made here. Its entry is recognized by the name of its owner.
 *
 * Context: process context, may sleep.
 *
 * Return: 0, or a negative errno.
 */
int rpcrdma_cm_find_entries(void)
{
	static const char owner[] = "rpcrdma_cm";
	struct rdma_restrack_entry *entry;
	struct rdma_cm_id *id;
	const char *name;
	size_t offset;
	int ret = -ENOENT;

	id = __rdma_create_kernel_id(&init_net, never_called, NULL, RDMA_PS_TCP, IB_QPT_RC, owner);
	if (IS_ERR(id))
		return PTR_ERR(id);

	for (offset = sizeof(*id); offset < ID_SIZE_MAX; offset += sizeof(void *)) {
		entry = (void *)id + offset;
		if (get_kernel_nofault(name, &entry->kern_name))
			break;
		if (name == owner) {
			entry_offset = offset;
			ret = 0;
			break;
		}
	}
	find_mutex(id);
	rdma_destroy_id(id);
	return ret;
}

/* How many pauses are left to the search that is running. */
static unsigned int pauses;

/*
 * Tries to lock the handler mutex of an id, for which rdma_cm has no function. If its place is not
 * known, waits for an id of NFS, and fails for one of a program.
 */
static bool try_lock_handler(struct rdma_cm_id *id, bool is_program)
{
	if (mutex_offset)
		return mutex_trylock(mutex_at(id, mutex_offset));
	if (!is_program)
		rdma_lock_handler(id);
	return !is_program;
}

/*
 * Waits before an id is looked at again whose handler mutex was locked. Returns whether that makes
 * sense: for an id of NFS unless the search is to stop, for programs PAUSES_MAX times.
 */
static bool pause_search(bool is_program)
{
	bool again = !READ_ONCE(stopping) && (!is_program || (mutex_offset && pauses));

	if (!again) {
		rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_SEARCH);
		return false;
	}
	if (is_program)
		pauses--;
	msleep(PAUSE_MS);
	return true;
}

/*
 * Notes the id of @entry, if it is one of programs, or of NFS, as @programs says. The
 * caller holds a reference, so the id is not destroyed. Returns false if its handler mutex was
 * locked.
 */
static bool look_at(struct rdma_restrack_entry *entry, bool programs)
{
	struct rdma_cm_id *id = (void *)entry - entry_offset;
	enum rpcrdma_cm_user user;

	if (!rpcrdma_cm_user_of(id, &user) || rpcrdma_cm_is_program(id) != programs)
		return true;

	/*
	 * Meanwhile rdma_cm fires no event of the id. The calls of rdma_disconnect() and the events
	 * of ends.c need no mutex, so they may be noted. The probes see every later event.
	 */
	if (!try_lock_handler(id, programs))
		return false;
	rpcrdma_cm_note_existing(id, user, entry->task);
	rdma_unlock_handler(id);
	return true;
}

/**
 * rpcrdma_cm_search_stop() - stop the search, or allow it again
 * @stop: whether it stops
 *
 * A search that is running ends with the id that it is looking at.
 *
 * Context: any.
 */
void rpcrdma_cm_search_stop(bool stop)
{
	WRITE_ONCE(stopping, stop);
}

/* Looks at the id with that number. Returns whether there was one. */
static bool look_at_number(struct ib_device *device, u32 number, bool programs)
{
	struct rdma_restrack_entry *entry;
	bool found = false, looked;

	do {
		entry = rdma_restrack_get_byid(device, RDMA_RESTRACK_CM_ID, number);
		if (IS_ERR(entry))
			return found;
		found = true;
		looked = look_at(entry, programs);
		rdma_restrack_put(entry);
		/* Without the reference: an id that its owner has destroyed would stay. */
	} while (!looked && pause_search(programs));
	return true;
}

/* Returns whether as many ids were found as the device has. */
static bool look_at_device(struct ib_device *device, bool programs)
{
	int left = rdma_restrack_count(device, RDMA_RESTRACK_CM_ID, true);
	u32 number;

	for (number = 0; left > 0 && number < NUMBERS_MAX; number++) {
		cond_resched();
		if (READ_ONCE(stopping))
			return true;
		if (!look_at_number(device, number, programs))
			continue;
		left--;
		/* Without a reference, too. */
		rpcrdma_cm_wait_for_room(programs);
	}
	return left <= 0;
}

static void search_device(struct ib_device *device, bool programs)
{
	int looks;

	/* Removal of a device waits for this reference, only while it is searched. */
	if (!ib_device_try_get(device))
		return;
	for (looks = 0; looks < LOOKS; looks++) {
		if (look_at_device(device, programs))
			break;
	}
	if (looks == LOOKS)
		rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_SEARCH);
	ib_device_put(device);
}

static LLIST_HEAD(devices);

/*
 * Puts the device on the list. It is searched later, because this is called with
 * locks held that other users of RDMA devices wait for. May be called for several
 * devices at a time.
 */
static int add_device(struct ib_device *ib)
{
	struct known_device *device;

	device = kzalloc_obj(*device);
	if (device) {
		get_device(&ib->dev);
		device->ib = ib;
		llist_add(&device->node, &devices);
	}
	/* With an error, the device does not become a device of this client. */
	return -EOPNOTSUPP;
}

/**
 * rpcrdma_cm_search() - note the connections that exist already
 *
 * Waits for handlers of events of these ids that are running, but not long for those of
 * programs. When it returns, the connections have been reported.
 *
 * Context: process context, may sleep.
 */
void rpcrdma_cm_search(void)
{
	struct ib_client client = {
		.name = KBUILD_MODNAME,
		.add = add_device,
	};
	struct known_device *device, *next;
	struct llist_node *found;
	int ret = -ENOENT;

	if (entry_offset)
		ret = ib_register_client(&client);
	if (ret) {
		rpcrdma_cm_limited(RPCRDMA_CM_LIMIT_SEARCH);
		pr_notice("cannot look for connections that are older than the module: %d\n", ret);
	} else {
		ib_unregister_client(&client);
	}

	found = llist_del_all(&devices);
	if (!ret) {
		/* NFS first, which no program makes wait. */
		pauses = PAUSES_MAX;
		llist_for_each_entry(device, found, node)
			search_device(device->ib, false);
		llist_for_each_entry(device, found, node)
			search_device(device->ib, true);
	}
	llist_for_each_entry_safe(device, next, found, node) {
		put_device(&device->ib->dev);
		kfree(device);
	}
	rpcrdma_cm_events_flush();
}

#endif
