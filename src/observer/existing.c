// SPDX-License-Identifier: GPL-2.0
/*
 * The connections that are older than the probes: the resource tracker knows
 * the ids of every device, and keeps the id that it is asked for.
 */

#include <linux/llist.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <rdma/rdma_cm.h>
#include <rdma/restrack.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_PROBES

/* The tracker counts on; where it has come this far, what is beyond is not found. */
#define NUMBERS_MAX		(16 * 1024 * 1024)

/* How far an id's entry may be behind the part of the id that all see. */
#define ENTRY_OFFSET_MAX	2048

struct known_device {
	struct llist_node node;
	struct ib_device *ib;
};

static int never_called(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/*
 * From an id to its entry in the tracker, which is in the part of the id that
 * only rdma_cm sees. In an id of our own it is found by the name of its owner.
 */
static int find_entry_offset(size_t *entry_offset)
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

	for (offset = sizeof(*id); offset < ENTRY_OFFSET_MAX; offset += sizeof(void *)) {
		entry = (void *)id + offset;
		if (get_kernel_nofault(name, &entry->kern_name))
			break;
		if (name == owner) {
			*entry_offset = offset;
			ret = 0;
			break;
		}
	}
	rdma_destroy_id(id);
	return ret;
}

/* The entry is held, and so is the id. */
static void look_at(struct rdma_restrack_entry *entry, size_t entry_offset,
		    rpcrdma_cm_event_fn fn, void *data)
{
	struct rdma_cm_id *id = (void *)entry - entry_offset;
	struct rpcrdma_cm_event event = {
		.id = id,
		.kind = RPCRDMA_CM_EXISTING,
	};

	if (!rpcrdma_cm_user_of(id, &event.user))
		return;

	/* No event comes meanwhile, and what comes later is seen. */
	rdma_lock_handler(id);
	event.local_port = rpcrdma_cm_port(shim_local_addr(id));
	event.remote_port = rpcrdma_cm_port(shim_remote_addr(id));
	if (entry->task)
		rpcrdma_cm_set_program(&event, entry->task);
	fn(data, &event);
	rdma_unlock_handler(id);
}

static void look_at_device(struct ib_device *device, size_t entry_offset,
			   rpcrdma_cm_event_fn fn, void *data)
{
	int left = rdma_restrack_count(device, RDMA_RESTRACK_CM_ID, true);
	struct rdma_restrack_entry *entry;
	u32 number;

	for (number = 0; left > 0 && number < NUMBERS_MAX; number++) {
		cond_resched();
		entry = rdma_restrack_get_byid(device, RDMA_RESTRACK_CM_ID, number);
		if (IS_ERR(entry))
			continue;
		left--;
		look_at(entry, entry_offset, fn, data);
		rdma_restrack_put(entry);
	}
}

static LLIST_HEAD(devices);

/*
 * Called with locks held that all of RDMA wants: the device is looked at later.
 * Devices that are being added may all come at a time.
 */
static int know_device(struct ib_device *ib)
{
	struct known_device *device;

	device = kzalloc_obj(*device);
	if (device) {
		get_device(&ib->dev);
		device->ib = ib;
		llist_add(&device->node, &devices);
	}
	/* It does not become one of ours. */
	return -EOPNOTSUPP;
}

/**
 * rpcrdma_cm_tell_existing() - tell of the connections that there are
 * @fn: is called, in process context, for each
 * @data: is given to @fn
 *
 * Waits for whoever handles an event of one of the ids.
 */
void rpcrdma_cm_tell_existing(rpcrdma_cm_event_fn fn, void *data)
{
	struct ib_client client = {
		.name = KBUILD_MODNAME,
		.add = know_device,
	};
	struct known_device *device, *next;
	size_t entry_offset;
	int ret;

	ret = find_entry_offset(&entry_offset);
	if (!ret)
		ret = ib_register_client(&client);
	if (ret)
		pr_notice("cannot look for connections that are older than the module: %d\n", ret);
	else
		ib_unregister_client(&client);

	llist_for_each_entry_safe(device, next, llist_del_all(&devices), node) {
		/* If a device goes, it waits only while it is looked at. */
		if (!ret && ib_device_try_get(device->ib)) {
			look_at_device(device->ib, entry_offset, fn, data);
			ib_device_put(device->ib);
		}
		put_device(&device->ib->dev);
		kfree(device);
	}
}

#endif
