// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "shim.h"

struct net *shim_get_current_net(void)
{
	return get_net(current->nsproxy->net_ns);
}

void shim_put_net(struct net *net)
{
	put_net(net);
}

/* Returns the index of the interface, or 0 where there is none of that name. */
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

struct workqueue_struct *shim_alloc_workqueue(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND, WQ_MAX_ACTIVE, name);
}

void shim_flush_workqueue(struct workqueue_struct *queue)
{
	__flush_workqueue(queue);
}

/* Waits for the resolver's work that is under way for @id, or cancels it. */
void shim_stop_resolver(struct rdma_cm_id *id)
{
	rdma_addr_cancel(&id->route.addr.dev_addr);
}

const struct sockaddr *shim_local_addr(const struct rdma_cm_id *id)
{
	return (const struct sockaddr *)&id->route.addr.src_addr;
}

const struct sockaddr *shim_remote_addr(const struct rdma_cm_id *id)
{
	return (const struct sockaddr *)&id->route.addr.dst_addr;
}

/* @name has room for IB_DEVICE_NAME_MAX octets. */
void shim_device_name(const struct ib_device *device, char *name)
{
	strscpy(name, device->name, IB_DEVICE_NAME_MAX);
}

enum rpcrdma_cm_transport shim_transport(const struct ib_device *device, u32 port)
{
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

u64 shim_dma_map(struct ib_device *device, void *octets, size_t len,
		 enum dma_data_direction direction)
{
	return ib_dma_map_single(device, octets, len, direction);
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

void shim_sg_set(struct scatterlist *entry, void *octets, u32 len)
{
	sg_set_buf(entry, octets, len);
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

u64 shim_mr_iova(const struct ib_mr *mr)
{
	return mr->iova;
}

void shim_mr_next_key(struct ib_mr *mr)
{
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
}

/*
 * @octets come from kmalloc(), and stay until the transfer has been destroyed.
 */
int shim_transfer_init(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
		       void *octets, u32 len, u64 remote, u32 rkey,
		       enum dma_data_direction direction)
{
	int ret;

	sg_init_one(&transfer->sg, octets, len);
	ret = rdma_rw_ctx_init(&transfer->ctx, qp, port, &transfer->sg, 1, 0, remote, rkey,
			       direction);
	return min(ret, 0);
}

int shim_transfer_post(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
		       struct ib_cqe *cqe)
{
	return rdma_rw_ctx_post(&transfer->ctx, qp, port, cqe, NULL);
}

void shim_transfer_destroy(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
			   enum dma_data_direction direction)
{
	rdma_rw_ctx_destroy(&transfer->ctx, qp, port, &transfer->sg, 1, direction);
}

void shim_reinit_completion(struct completion *done)
{
	reinit_completion(done);
}

int shim_post_send(struct ib_qp *qp, const struct ib_send_wr *wr)
{
	return ib_post_send(qp, wr, NULL);
}

void shim_fail_qp(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	ib_modify_qp(qp, &attr, IB_QP_STATE);
}

int shim_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}

/*
 * rdma_create_qp() makes the queue pair in the name of rdma_cm itself. Readers
 * of the resource tracker print whichever of the two names they find.
 */
void shim_name_qp(struct ib_qp *qp, const char *name)
{
	WRITE_ONCE(qp->res.kern_name, name);
}
