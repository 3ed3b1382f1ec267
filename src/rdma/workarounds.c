// SPDX-License-Identifier: GPL-2.0
/*
 * Work for the RDMA core, which the core does not offer or does wrong. These functions access
 * data that belongs to the core. The comment of a function, or of the one before it, names the
 * report after whose fix it can be removed. One use of shim_is_siw() in shim.c is removed after
 * such a fix. shim_transfer_init() in shim.c accesses data of rdma_rw, for which there is no
 * report.
 */
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "../shim.h"

/*
 * Cancels the address resolver's work for @id, or waits for it if it is running: it unlocks
 * the id without a reference on it, so the id must not be freed meanwhile. Must not be
 * called by that work, which calls the handler of the id.
 *
 * Needed until reports/cma-unlock-after-free.txt is fixed.
 */
void workaround_stop_resolver(struct rdma_cm_id *id)
{
	rdma_addr_cancel(&id->route.addr.dev_addr);
}

/*
 * Names the owner of a queue pair, for the resource tracker, and sets its handler of events.
 * rdma_create_qp() names rdma_cm. Readers of the resource tracker may see either name
 * meanwhile. The handler is not passed to rdma_create_qp(): if that failed, and the device
 * kept the queue pair, the queue pair would go on calling the handler, and no caller would
 * know the queue pair.
 *
 * Needed until reports/cma-destroy-qp.txt is fixed.
 */
void workaround_own_qp(struct ib_qp *qp, const char *name,
		       void (*event_handler)(struct ib_event *event, void *context))
{
	WRITE_ONCE(qp->res.kern_name, name);
	WRITE_ONCE(qp->registered_event_handler, event_handler);
}

/*
 * Gives a leaked object the name of its device. Its old name is in the memory of this
 * module, and the resource tracker prints the name even after the module was unloaded.
 *
 * This function and the next two are needed until reports/restrack-owner-name.txt is
 * fixed. That report also covers qp->mrs_used.
 */
void workaround_disown_pd(struct ib_pd *pd)
{
	WRITE_ONCE(pd->res.kern_name, pd->device->name);
}

void workaround_disown_mr(struct ib_mr *mr)
{
	WRITE_ONCE(mr->res.kern_name, mr->device->name);
}

/*
 * Disowns the memory regions of a transfer, and returns whether there are any. The regions
 * are not in the pool of @qp at present, so destroying the pool does not free them, and
 * ib_destroy_qp() would warn that they are in use. rdma_rw does not tell which transfers
 * have regions, so @transfer must be the only transfer of @qp.
 */
bool workaround_disown_transfer(const struct rpcrdma_cm_transfer *transfer,
				struct ib_qp *qp)
{
	unsigned long flags;
	u32 i;

	if (!qp->mrs_used)
		return false;
	for (i = 0; i < transfer->ctx.nr_ops; i++)
		workaround_disown_mr(transfer->ctx.reg[i].mr);
	spin_lock_irqsave(&qp->mr_lock, flags);
	qp->mrs_used -= transfer->ctx.nr_ops;
	spin_unlock_irqrestore(&qp->mr_lock, flags);
	return true;
}

/*
 * Returns whether a queue pair uses @cq. If so, @cq is to be leaked: its completions are not
 * handled any more, and it has the name of its device.
 *
 * rdma_create_qp() and rdma_destroy_qp() do not tell whether the device has kept the queue
 * pair. But ib_destroy_qp_user() decrements the use count of the completion queue only if it
 * succeeds. ib_free_cq() only warns while a queue pair uses the completion queue, so
 * nothing else stops its work.
 *
 * Needed until reports/cma-destroy-qp.txt is fixed. The name is set until
 * reports/restrack-owner-name.txt is fixed.
 */
bool workaround_leak_cq(struct ib_cq *cq)
{
	if (!atomic_read(&cq->usecnt))
		return false;
	WRITE_ONCE(cq->res.kern_name, cq->device->name);
	disable_work_sync(&cq->work);
	return true;
}

/*
 * Destroys the queue pair of @id, the only user of @cq. Returns false if the device
 * refuses. Both are to be leaked then, and their completions and events are not handled any
 * more. There is one gap: a task that has read the handler, and is preempted before the
 * handler enters its RCU read-side critical section, is not waited for.
 *
 * Needed as long as workaround_leak_cq() is.
 */
bool workaround_destroy_qp(struct rdma_cm_id *id, struct ib_cq *cq)
{
	struct ib_qp *qp = id->qp;

	rdma_destroy_qp(id);
	if (!workaround_leak_cq(cq))
		return true;
	WRITE_ONCE(qp->res.kern_name, qp->device->name);
	WRITE_ONCE(qp->registered_event_handler, NULL);
	/* Waits for handlers of events. */
	synchronize_rcu();
	return false;
}
