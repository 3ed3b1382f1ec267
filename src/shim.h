/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions for inline functions and macros of the kernel, which bindgen cannot bind. The
 * C files and the Rust bindings both use this file, so they cannot differ.
 */
#ifndef RPCRDMA_CM_SHIM_H
#define RPCRDMA_CM_SHIM_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/types.h>
#include <rdma/rw.h>

struct ib_cq;
struct module;
struct net;
struct rdma_cm_id;
struct sockaddr;
struct workqueue_struct;

/* The holds of an unload guard. */
struct rpcrdma_cm_holds {
	refcount_t count;
	struct completion none;		/* completed when the last hold has ended */
	struct workqueue_struct *teardown;	/* destroys the objects that had a hold */
};

/* One transfer: an RDMA Read or Write between local memory and that of the peer. */
struct rpcrdma_cm_transfer {
	struct rdma_rw_ctx ctx;
	struct scatterlist sg;
};

enum rpcrdma_cm_transport {
	RPCRDMA_CM_INFINIBAND,
	RPCRDMA_CM_ROCE,
	RPCRDMA_CM_IWARP,
	RPCRDMA_CM_OTHER,
};

u64 shim_log_clock(void);

struct net *shim_get_current_net(void);
void shim_get_net(struct net *net);
void shim_put_net(struct net *net);
int shim_ifindex(struct net *net, const char *name);

struct workqueue_struct *shim_alloc_workqueue(const char *name);
void shim_flush_workqueue(struct workqueue_struct *queue);

struct rpcrdma_cm_holds *shim_unload_guard(const void *guard, struct module *module,
					   const char *name);
u32 shim_unload_wait(struct rpcrdma_cm_holds *holds, u32 milliseconds);
void shim_unload_end(struct rpcrdma_cm_holds *holds);
void shim_hold_again(struct rpcrdma_cm_holds *holds);
void shim_hold_end(struct rpcrdma_cm_holds *holds);
struct workqueue_struct *shim_hold_queue(const struct rpcrdma_cm_holds *holds);

const struct sockaddr *shim_local_addr(const struct rdma_cm_id *id);
const struct sockaddr *shim_remote_addr(const struct rdma_cm_id *id);

void shim_device_name(const struct ib_device *device, char *name);
void shim_device_get(struct ib_device *device);
enum rpcrdma_cm_transport shim_transport(const struct ib_device *device, u32 port);
bool shim_mem_mgt_extensions(const struct ib_device *device);
bool shim_is_siw(const struct ib_device *device);
u8 shim_max_qp_rd_atom(const struct ib_device *device);
u8 shim_max_qp_init_rd_atom(const struct ib_device *device);

u32 shim_local_dma_lkey(const struct ib_pd *pd);
u32 shim_max_fast_reg_page_list_len(const struct ib_device *device);
u64 shim_dma_map(struct ib_device *device, void *buf, size_t len,
		 enum dma_data_direction direction);
bool shim_dma_mapping_error(struct ib_device *device, u64 addr);
void shim_dma_unmap(struct ib_device *device, u64 addr, size_t len,
		    enum dma_data_direction direction);
void shim_dma_sync_for_cpu(struct ib_device *device, u64 addr, size_t len,
			   enum dma_data_direction direction);
void shim_dma_sync_for_device(struct ib_device *device, u64 addr, size_t len,
			      enum dma_data_direction direction);

void shim_sg_set(struct scatterlist *entry, void *buf, u32 len);
int shim_dma_map_sg(struct ib_device *device, struct scatterlist *list, int entries,
		    enum dma_data_direction direction);
void shim_dma_unmap_sg(struct ib_device *device, struct scatterlist *list, int entries,
		       enum dma_data_direction direction);
u32 shim_mr_rkey(const struct ib_mr *mr);
u32 shim_mr_length(const struct ib_mr *mr);
u64 shim_mr_set_iova(struct ib_mr *mr, u64 offset);
void shim_mr_next_key(struct ib_mr *mr);

int shim_transfer_init(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
		       void *buf, u32 len, u64 remote, u32 rkey,
		       enum dma_data_direction direction);
int shim_transfer_post(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
		       struct ib_cqe *cqe);
void shim_transfer_destroy(struct rpcrdma_cm_transfer *transfer, struct ib_qp *qp, u32 port,
			   enum dma_data_direction direction);

int shim_post_send(struct ib_qp *qp, const struct ib_send_wr *wr);
int shim_fail_qp(struct ib_qp *qp);
const char *shim_qp_failure(const struct ib_event *event);
int shim_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr);

/* rdma/workarounds.c */
void workaround_stop_resolver(struct rdma_cm_id *id);
void workaround_own_qp(struct ib_qp *qp, const char *name,
		       void (*event_handler)(struct ib_event *event, void *context));
void workaround_disown_pd(struct ib_pd *pd);
void workaround_disown_mr(struct ib_mr *mr);
bool workaround_disown_transfer(const struct rpcrdma_cm_transfer *transfer,
				struct ib_qp *qp);
bool workaround_leak_cq(struct ib_cq *cq);
bool workaround_destroy_qp(struct rdma_cm_id *id, struct ib_cq *cq);

void trace_rpcrdma_cm_sent(u64 id, bool server, const u8 *octets, u8 len);
void trace_rpcrdma_cm_parsed(u64 id, bool server, u8 outcome, u8 len, u8 offset,
			     u8 version, u32 send_size, u32 receive_size,
			     bool remote_invalidation);
void trace_rpcrdma_cm_negotiated(u64 id, bool server, u32 generation,
				 const struct sockaddr *local,
				 const struct sockaddr *remote,
				 u32 client_to_server, u32 server_to_client,
				 bool remote_invalidation);
void trace_rpcrdma_cm_closed(u64 id, bool server, u32 generation, int error);

#endif /* RPCRDMA_CM_SHIM_H */
