// SPDX-License-Identifier: GPL-2.0

#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rust.h>
#include <rdma/rw.h>

@shim_local_addr

@shim_remote_addr

@shim_device_name

@shim_device_get

@shim_transport

@shim_mem_mgt_extensions

@shim_is_siw

@shim_max_qp_rd_atom

@shim_max_qp_init_rd_atom

@shim_local_dma_lkey

@shim_max_fast_reg_page_list_len

@shim_dma_map

@shim_dma_mapping_error

@shim_dma_unmap

@shim_dma_sync_for_cpu

@shim_dma_sync_for_device

@shim_sg_set

@shim_dma_map_sg

@shim_dma_unmap_sg

@shim_mr_rkey

@shim_mr_length

@shim_mr_set_iova

@shim_mr_next_key

@shim_transfer_init

@shim_transfer_post

@shim_transfer_destroy

@shim_post_send

@shim_fail_qp

@shim_qp_failure

@shim_post_recv

@workaround_stop_resolver

@workaround_own_qp

@workaround_disown_pd

@workaround_disown_mr

@workaround_disown_transfer

@workaround_leak_cq

@workaround_destroy_qp
