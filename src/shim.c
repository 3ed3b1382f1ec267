// SPDX-License-Identifier: GPL-2.0
/*
 * Functions for Rust code, which cannot call inline functions, expand macros, or read members of
 * structures that are opaque to the bindings. A function that does more says why.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "shim.h"

/* Not among the parameters of module!, which has no version. */
MODULE_VERSION(RPCRDMA_CM_VERSION);

/* Returns the time on the clock of the kernel's log, in nanoseconds. */
u64 shim_log_clock(void)
{
	return local_clock();
}

/*
 * Returns the network namespace of the current task, with a reference. Returns NULL if
 * the task is exiting, and has left its namespaces.
 */
struct net *shim_get_current_net(void)
{
	struct nsproxy *nsproxy = current->nsproxy;

	return nsproxy ? get_net(nsproxy->net_ns) : NULL;
}

void shim_get_net(struct net *net)
{
	get_net(net);
}

void shim_put_net(struct net *net)
{
	put_net(net);
}

/* Returns the index of the interface of that name, or 0 if there is none. */
int shim_ifindex(struct net *net, const char *name)
{
	struct net_device *dev;
	int ifindex;

	rcu_read_lock();
	dev = dev_get_by_name_rcu(net, name);
	ifindex = dev ? dev->ifindex : 0;
	rcu_read_unlock();

	return ifindex;
}

/* Unbound, because the works sleep; with as many at a time as the kernel allows. */
struct workqueue_struct *shim_alloc_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND, WQ_MAX_ACTIVE, name);
}

void shim_flush_workqueue(struct workqueue_struct *queue)
{
	__flush_workqueue(queue);
}

/*
 * Creates the counter of an unload guard's holds. Each object through which the kernel may
 * still call the module has one. So has the guard, from when it is made until it is dropped.
 * A count that overflows is saturated, so that unloading waits for ever.
 *
 * @guard must be a field of the value that the kernel drops before it frees @module. Only
 * checks that it is in the memory of @module. @module is NULL if it is part of the kernel,
 * which is not freed. Returns ERR_PTR(-EINVAL) if the guard is elsewhere, or
 * ERR_PTR(-ENOMEM).
 */
struct rpcrdma_cm_holds *shim_unload_guard(const void *guard, struct module *module,
					   const char *name)
{
	struct rpcrdma_cm_holds *holds;

	if (module && !within_module_core((unsigned long)guard, module))
		return ERR_PTR(-EINVAL);
	holds = kmalloc_obj(*holds);
	if (!holds)
		return ERR_PTR(-ENOMEM);
	holds->teardown = shim_alloc_workqueue(name);
	if (!holds->teardown) {
		kfree(holds);
		return ERR_PTR(-ENOMEM);
	}
	refcount_set(&holds->count, 1);
	init_completion(&holds->none);
	return holds;
}

/*
 * Waits until there are no holds, or that time has passed. The guard's own hold must have
 * ended. Returns how many holds are left; 0 only once.
 */
u32 shim_unload_wait(struct rpcrdma_cm_holds *holds, u32 milliseconds)
{
	if (wait_for_completion_timeout(&holds->none, msecs_to_jiffies(milliseconds)))
		return 0;
	/* The last hold may end just now. It is not over before the completion says so. */
	return max(refcount_read(&holds->count), 1);
}

/* Waits until the work that ended the last hold has returned, and frees @holds. */
void shim_unload_end(struct rpcrdma_cm_holds *holds)
{
	destroy_workqueue(holds->teardown);
	kfree(holds);
}

/* Takes another hold. The caller must have one, so that this cannot fail. */
void shim_hold_again(struct rpcrdma_cm_holds *holds)
{
	refcount_inc(&holds->count);
}

void shim_hold_end(struct rpcrdma_cm_holds *holds)
{
	if (refcount_dec_and_test(&holds->count))
		complete(&holds->none);
}

/* Returns the queue in which the objects that have holds are destroyed. */
struct workqueue_struct *shim_hold_queue(const struct rpcrdma_cm_holds *holds)
{
	return holds->teardown;
}

const struct sockaddr *shim_local_addr(const struct rdma_cm_id *id)
{
	return (const struct sockaddr *)&id->route.addr.src_addr;
}

const struct sockaddr *shim_remote_addr(const struct rdma_cm_id *id)
{
	return (const struct sockaddr *)&id->route.addr.dst_addr;
}

/* Copies the name of the device. @name must have room for IB_DEVICE_NAME_MAX bytes. */
void shim_device_name(const struct ib_device *device, char *name)
{
	strscpy(name, device->name, IB_DEVICE_NAME_MAX);
}

/*
 * Takes a reference. The device must be registered, so that the count is not zero.
 * ib_device_try_get() may fail, and AlwaysRefCounted::inc_ref() of Rust cannot.
 */
void shim_device_get(struct ib_device *device)
{
	refcount_inc(&device->refcount);
}

/* Returns RPCRDMA_CM_OTHER for a port that the device does not have, too. */
enum rpcrdma_cm_transport shim_transport(const struct ib_device *device, u32 port)
{
	if (!rdma_is_port_valid(device, port))
		return RPCRDMA_CM_OTHER;
	if (rdma_protocol_iwarp(device, port))
		return RPCRDMA_CM_IWARP;
	if (rdma_protocol_roce(device, port))
		return RPCRDMA_CM_ROCE;
	if (rdma_protocol_ib(device, port))
		return RPCRDMA_CM_INFINIBAND;
	return RPCRDMA_CM_OTHER;
}

bool shim_mem_mgt_extensions(const struct ib_device *device)
{
	return device->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS;
}

/*
 * Whether the device is soft-iWARP, which matters in two cases. Request::defer() of
 * request.rs does not defer over it, until reports/siw-first-message.txt and a fault that is
 * withheld are fixed. And some of its errors do not count as causes: when the peer
 * disconnects, siw_qp_sq_process() reports the Send or the Read Response that is under way
 * as an error of this end.
 */
bool shim_is_siw(const struct ib_device *device)
{
	return device->ops.driver_id == RDMA_DRIVER_SIW;
}

/* A REQ or REP has one byte for each count of RDMA Reads. Before 7.3 the counts are signed. */
u8 shim_max_qp_rd_atom(const struct ib_device *device)
{
	return clamp(device->attrs.max_qp_rd_atom, 0, U8_MAX);
}

u8 shim_max_qp_init_rd_atom(const struct ib_device *device)
{
	return clamp(device->attrs.max_qp_init_rd_atom, 0, U8_MAX);
}

u32 shim_local_dma_lkey(const struct ib_pd *pd)
{
	return pd->local_dma_lkey;
}

u32 shim_max_fast_reg_page_list_len(const struct ib_device *device)
{
	return device->attrs.max_fast_reg_page_list_len;
}

u64 shim_dma_map(struct ib_device *device, void *buf, size_t len,
		 enum dma_data_direction direction)
{
	return ib_dma_map_single(device, buf, len, direction);
}

bool shim_dma_mapping_error(struct ib_device *device, u64 addr)
{
	return ib_dma_mapping_error(device, addr);
}

void shim_dma_unmap(struct ib_device *device, u64 addr, size_t len,
		    enum dma_data_direction direction)
{
	ib_dma_unmap_single(device, addr, len, direction);
}

void shim_dma_sync_for_cpu(struct ib_device *device, u64 addr, size_t len,
			   enum dma_data_direction direction)
{
	ib_dma_sync_single_for_cpu(device, addr, len, direction);
}

void shim_dma_sync_for_device(struct ib_device *device, u64 addr, size_t len,
			      enum dma_data_direction direction)
{
	ib_dma_sync_single_for_device(device, addr, len, direction);
}

void shim_sg_set(struct scatterlist *entry, void *buf, u32 len)
{
	sg_set_buf(entry, buf, len);
}

int shim_dma_map_sg(struct ib_device *device, struct scatterlist *list, int entries,
		    enum dma_data_direction direction)
{
	return ib_dma_map_sg(device, list, entries, direction);
}

void shim_dma_unmap_sg(struct ib_device *device, struct scatterlist *list, int entries,
		       enum dma_data_direction direction)
{
	ib_dma_unmap_sg(device, list, entries, direction);
}

u32 shim_mr_rkey(const struct ib_mr *mr)
{
	return mr->rkey;
}

u32 shim_mr_length(const struct ib_mr *mr)
{
	return mr->length;
}

/*
 * Sets the offset by which the peer addresses the region, and returns it. It begins as
 * the DMA address of the first byte, by ib_map_mr_sg(). Over rxe and siw that is a
 * kernel virtual address, which the peer must not learn. This replaces it by @offset,
 * which must be aligned to pages, and keeps the position of the first byte in its page.
 * Must be called before the region is registered, as in frwr_map() of xprtrdma.
 */
u64 shim_mr_set_iova(struct ib_mr *mr, u64 offset)
{
	mr->iova = offset | (mr->iova & (mr->page_size - 1));
	return mr->iova;
}

/* Gives the region another key than before, so that an old rkey does not lead to it. */
void shim_mr_next_key(struct ib_mr *mr)
{
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
}

/*
 * Prepares a transfer between @buf and the peer's memory. @buf must come from
 * kmalloc(), and must not be freed until the transfer has been destroyed.
 *
 * On iWARP a Read Request tells the peer the offset of the memory that receives the
 * response. rdma_rw registers that memory, see rdma_rw_io_needs_mr(). The offset is set
 * here, so that the peer does not learn an address, as in shim_mr_set_iova().
 *
 * The part for iWARP can be removed when rdma_rw takes an offset.
 */
int shim_transfer_init(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
		       void *buf, u32 len, u64 remote, u32 rkey,
		       enum dma_data_direction direction)
{
	int ret;
	u32 i;

	sg_init_one(&transfer->sg, buf, len);
	ret = rdma_rw_ctx_init(&transfer->ctx, qp, port, &transfer->sg, 1, 0, remote, rkey,
			       direction);
	if (ret < 0)
		return ret;

	if (direction == DMA_FROM_DEVICE && rdma_protocol_iwarp(qp->device, port))
		for (i = 0; i < transfer->ctx.nr_ops; i++) {
			struct rdma_rw_reg_ctx *reg = &transfer->ctx.reg[i];

			reg->sge.addr = shim_mr_set_iova(reg->mr, 1ULL << 32);
		}
	return 0;
}

/*
 * Posts the Work Requests of a transfer. Returns -EINPROGRESS if only some of them were
 * posted.
 */
int shim_transfer_post(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
		       struct ib_cqe *cqe)
{
	struct ib_send_wr *first = rdma_rw_ctx_wrs(&transfer->ctx, qp, port, cqe, NULL);
	const struct ib_send_wr *bad = first;
	int ret = ib_post_send(qp, first, &bad);

	return ret && bad != first ? -EINPROGRESS : ret;
}

void shim_transfer_destroy(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
			   enum dma_data_direction direction)
{
	rdma_rw_ctx_destroy(&transfer->ctx, qp, port, &transfer->sg, 1, direction);
}

int shim_post_send(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	return ib_post_send(qp, wr, NULL);
}

/*
 * Makes the queue pair fail. Every state except RESET permits that, and rdma_create_qp() has left
 * RESET. cxgb4 refuses it after a Terminate.
 */
int shim_fail_qp(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

/*
 * Returns the name of an event that tells why the queue pair has failed, or NULL if @event is
 * another one.
 */
const char *shim_qp_failure(const struct ib_event *event)
{
	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
		/* Also caused by a disconnect of the peer. ib_core leaves event->device NULL. */
		if (shim_is_siw(event->element.qp->device))
			return NULL;
		fallthrough;
	case IB_EVENT_QP_ACCESS_ERR:
		return ib_event_msg(event->event);
	default:
		return NULL;
	}
}

int shim_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}
