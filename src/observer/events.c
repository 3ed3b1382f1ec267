// SPDX-License-Identifier: GPL-2.0
/*
 * The events that probes have noted, until a work reports them. A probe may run where it
 * must not sleep, allocate or take a spin lock of PREEMPT_RT, so it only fills memory that
 * exists already, under a raw lock.
 *
 * Root's programs and those of other users have rings of their own, so that nobody takes the
 * room of others. Events of all rings are reported in one order, because an id may have the
 * address of one that was destroyed before.
 *
 * After an event was lost, the ring takes no other event until it is empty and the report of the
 * loss begins. Later events are reported after the loss. So nothing that was known before the loss
 * is held true after it.
 */

#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_PROBES

/* The number of events of a ring: a power of two. */
#define RING_SIZE	1024

enum { NFS, ROOT, USERS };

static struct ring {
	struct rpcrdma_cm_event *events;
	/* How many events were noted, and how many of these were reported. */
	u32 noted, reported;
	/* How many events were lost since the last report of that. */
	u32 lost;
	bool reporting_loss;
} rings[] = {
	[NFS] = {},
	[ROOT] = {},	/* the programs of root */
	[USERS] = {},	/* the programs of other users */
};

static DEFINE_RAW_SPINLOCK(lock);
static u64 next_number;
/* Whether events are noted. */
static bool active;

static rpcrdma_cm_event_fn event_fn;
static void *event_data;
/* Of high priority: programs may use all the time of the processors to fill their ring. */
static struct workqueue_struct *queue;

static struct ring *ring_of(enum rpcrdma_cm_user user, u32 uid)
{
	if (user != RPCRDMA_CM_UCMA)
		return &rings[NFS];
	return &rings[uid == 0 ? ROOT : USERS];
}

static struct rpcrdma_cm_event *slot(const struct ring *ring, u32 index)
{
	return &ring->events[index % RING_SIZE];
}

/* Takes the loss of a ring that is empty. The lock is held. */
static bool take_loss(struct ring *ring, struct rpcrdma_cm_event *loss)
{
	if (!ring->lost || ring->noted != ring->reported)
		return false;
	*loss = (struct rpcrdma_cm_event) {
		.user = ring == &rings[NFS] ? RPCRDMA_CM_XPRTRDMA : RPCRDMA_CM_UCMA,
		.kind = RPCRDMA_CM_LOST,
		.result = ring->lost,
		.uid = ring == &rings[ROOT] ? 0 : U32_MAX,
	};
	ring->lost = 0;
	ring->reporting_loss = true;
	return true;
}

/*
 * Returns the ring whose event is to be reported next, and sets @event to it. A loss of events
 * is an event, too: @loss. Returns NULL if there is none.
 */
static struct ring *next_event(struct rpcrdma_cm_event **event, struct rpcrdma_cm_event *loss)
{
	struct ring *ring, *next = NULL;
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(&lock, flags);
	for (i = 0; i < ARRAY_SIZE(rings); i++) {
		ring = &rings[i];
		if (take_loss(ring, loss)) {
			*event = loss;
			next = ring;
			break;
		}
		if (ring->noted == ring->reported)
			continue;
		if (!next || slot(ring, ring->reported)->number < (*event)->number) {
			*event = slot(ring, ring->reported);
			next = ring;
		}
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return next;
}

static void event_reported(struct ring *ring)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	if (ring->reporting_loss)
		ring->reporting_loss = false;
	else
		ring->reported++;
	raw_spin_unlock_irqrestore(&lock, flags);
}

/* The most events and losses that can wait at a time. */
#define MAX_WAITING	(ARRAY_SIZE(rings) * (RING_SIZE + 1))

/*
 * One run reports as many events as can wait at a time: all that were noted before it, and perhaps
 * some that are noted meanwhile. It leaves the rest to the next run. Otherwise programs could keep
 * readers, who wait for a run, from ever going on.
 */
static void report_events(struct work_struct *work)
{
	/* Not on the stack: it is large, and there is one such work. */
	static struct rpcrdma_cm_event loss;
	struct rpcrdma_cm_event *event = NULL;
	unsigned long flags;
	unsigned int noio;
	struct ring *ring;
	size_t left;

	for (left = MAX_WAITING; left; left--) {
		ring = next_event(&event, &loss);
		if (!ring)
			return;
		/* Readers of the files wait for this, which must not wait for a server of NFS. */
		noio = memalloc_noio_save();
		event_fn(event_data, event);
		memalloc_noio_restore(noio);
		event_reported(ring);
		cond_resched();
	}
	raw_spin_lock_irqsave(&lock, flags);
	queue_work(queue, work);
	raw_spin_unlock_irqrestore(&lock, flags);
}

/* Queued with the lock held, so that a task that takes the lock later can wait for it. */
static DECLARE_WORK(report_work, report_events);

static void report_late(struct timer_list *unused)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	if (active)
		queue_work(queue, &report_work);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static DEFINE_TIMER(late_timer, report_late);

/**
 * rpcrdma_cm_note_begins() - begin to note an event
 * @id: the id of the event
 * @user: its owner; of DESTROYED and of the events of ends.c, UCMA or another one
 * @kind: the kind of the event
 * @flags: is set, for rpcrdma_cm_note_ends()
 *
 * Context: any except that of an NMI. If an event is returned, a raw lock is held, with
 * interrupts off, until rpcrdma_cm_note_ends() is called.
 *
 * Return: the event, with its number and its user set, and its other members 0; or NULL if there
 * is no room for it, or if events are not noted at present.
 */
struct rpcrdma_cm_event *rpcrdma_cm_note_begins(const struct rdma_cm_id *id,
						enum rpcrdma_cm_user user,
						enum rpcrdma_cm_event_kind kind,
						unsigned long *flags)
{
	u32 uid = user == RPCRDMA_CM_UCMA ? rpcrdma_cm_uid_of(id) : 0;
	struct ring *ring = ring_of(user, uid);
	struct rpcrdma_cm_event *event;

	raw_spin_lock_irqsave(&lock, *flags);
	if (!active)
		goto none;
	if (ring->lost || ring->noted - ring->reported == RING_SIZE) {
		ring->lost++;
		goto none;
	}
	event = slot(ring, ring->noted++);
	memset(event, 0, sizeof(*event));
	event->number = next_number++;
	event->id = id;
	event->user = user;
	event->kind = kind;
	event->uid = uid;
	return event;

none:
	raw_spin_unlock_irqrestore(&lock, *flags);
	return NULL;
}

static bool is_half_full(const struct ring *ring)
{
	return ring->noted - ring->reported >= RING_SIZE / 2;
}

static bool programs_half_full(void)
{
	return is_half_full(&rings[ROOT]) || is_half_full(&rings[USERS]);
}

/**
 * rpcrdma_cm_note_ends() - have an event reported that was noted
 * @flags: as rpcrdma_cm_note_begins() has set them
 *
 * Events of programs wait for a jiffy, because a switch to the work for each of them would cost
 * too much time. Readers do not wait for that.
 *
 * Context: any except that of an NMI.
 */
void rpcrdma_cm_note_ends(unsigned long flags)
{
	/* With the lock, so that the queue is not destroyed meanwhile. */
	if (rings[NFS].noted != rings[NFS].reported || programs_half_full())
		queue_work(queue, &report_work);
	else
		timer_reduce(&late_timer, jiffies + 1);
	raw_spin_unlock_irqrestore(&lock, flags);
}

/**
 * rpcrdma_cm_wait_for_room() - wait until the rings are not half full
 * @programs: the rings of programs, or that of NFS
 *
 * Context: process context, may sleep.
 */
void rpcrdma_cm_wait_for_room(bool programs)
{
	unsigned long flags;
	bool half_full;

	raw_spin_lock_irqsave(&lock, flags);
	half_full = programs ? programs_half_full() : is_half_full(&rings[NFS]);
	raw_spin_unlock_irqrestore(&lock, flags);
	if (half_full)
		rpcrdma_cm_events_flush();
}

/**
 * rpcrdma_cm_events_flush() - wait until all events have been reported that were noted before
 *
 * Context: process context, may sleep; not in a report.
 */
void rpcrdma_cm_events_flush(void)
{
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(&lock, flags);
	for (i = 0; active && i < ARRAY_SIZE(rings); i++) {
		if (rings[i].noted != rings[i].reported)
			queue_work(queue, &report_work);
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	flush_work(&report_work);
}

/* Whether the end of an id of NFS has been noted, or may have been lost. The lock is held. */
static bool may_have_ended(const struct rdma_cm_id *id)
{
	const struct ring *ring = &rings[NFS];
	const struct rpcrdma_cm_event *event;
	u32 i;

	if (ring->lost || ring->reporting_loss)
		return true;
	for (i = ring->reported; i != ring->noted; i++) {
		event = slot(ring, i);
		if (event->id == id && event->kind == RPCRDMA_CM_DESTROYED)
			return true;
	}
	return false;
}

/**
 * rpcrdma_cm_count() - read the counters that the kernel's client keeps of a transport
 * @counters: is set
 * @id: an id of the client, whose end has not been reported, or is being reported
 *
 * While the probe of cm_id_destroy is registered, an id is not freed before its end was noted,
 * which takes the lock. Must not be called while the probes are being removed.
 *
 * Context: any except that of an NMI.
 *
 * Return: whether the counters could be read.
 */
bool rpcrdma_cm_count(struct rpcrdma_cm_counters *counters, const struct rdma_cm_id *id)
{
	unsigned long flags;
	bool ret = false;

	raw_spin_lock_irqsave(&lock, flags);
	if (active && !may_have_ended(id))
		ret = rpcrdma_cm_xprtrdma_count(counters, id);
	raw_spin_unlock_irqrestore(&lock, flags);
	return ret;
}

static void free_rings(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(rings); i++) {
		kvfree(rings[i].events);
		rings[i] = (struct ring) {};
	}
}

/**
 * rpcrdma_cm_events_register() - make room for events, and begin to report them
 * @fn: is called for each event
 * @data: is passed to @fn
 *
 * Context: process context, may sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_cm_events_register(rpcrdma_cm_event_fn fn, void *data)
{
	struct rpcrdma_cm_event *events[ARRAY_SIZE(rings)] = {};
	struct workqueue_struct *new_queue;
	unsigned long flags;
	int i;

	for (i = 0; i < ARRAY_SIZE(rings); i++) {
		events[i] = kvcalloc(RING_SIZE, sizeof(*events[i]), GFP_KERNEL);
		if (!events[i])
			goto no_memory;
	}
	new_queue = alloc_workqueue("rpcrdma_cm_events", WQ_UNBOUND | WQ_HIGHPRI, 1);
	if (!new_queue)
		goto no_memory;

	/* Probes may run already. */
	raw_spin_lock_irqsave(&lock, flags);
	for (i = 0; i < ARRAY_SIZE(rings); i++)
		rings[i].events = events[i];
	queue = new_queue;
	event_fn = fn;
	event_data = data;
	active = true;
	raw_spin_unlock_irqrestore(&lock, flags);
	return 0;

no_memory:
	for (i = 0; i < ARRAY_SIZE(rings); i++)
		kvfree(events[i]);
	return -ENOMEM;
}

/**
 * rpcrdma_cm_events_unregister() - report what has been noted, and free the room
 *
 * The probes have been removed, so that ids may be destroyed without being noted.
 *
 * Context: process context, may sleep.
 */
void rpcrdma_cm_events_unregister(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	active = false;
	queue_work(queue, &report_work);
	raw_spin_unlock_irqrestore(&lock, flags);
	timer_delete_sync(&late_timer);
	destroy_workqueue(queue);
	free_rings();
}

#endif
