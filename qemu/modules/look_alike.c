// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: connects when it is loaded, with an event handler named like that
 * of the kernel's NFS client. The observer must not take it for that client. One of its
 * functions is named like one of rdma_cm, and no probe may be attached to it.
 *
 * The connection has no queue pair, so it needs a device whose CM is that of InfiniBand.
 */
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nsproxy.h>
#include <rdma/rdma_cm.h>

#define TIMEOUT_MS	10000

static char *address;
module_param(address, charp, 0400);
MODULE_PARM_DESC(address, "The server's IPv4 address");

static ushort port;
module_param(port, ushort, 0400);
MODULE_PARM_DESC(port, "The server's port");

static struct rdma_cm_id *client;
static DECLARE_COMPLETION(connected);
static int failure;

/* The symbol is local, so rdma_cm's own is not affected. */
static noinline void __used disconnect(void)
	__asm__("rdma_disconnect");
static noinline void __used disconnect(void)
{
}

static int rpcrdma_cm_event_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .qp_num = 1, .retry_count = 7, .rnr_retry_count = 7 };

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		failure = rdma_resolve_route(id, TIMEOUT_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		failure = rdma_connect_locked(id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		failure = rdma_accept(id, NULL);
		complete(&connected);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		failure = event->status < 0 ? event->status : -ECONNREFUSED;
	}
	if (failure)
		complete(&connected);
	return 0;
}

static int __init look_alike_init(void)
{
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(port) };
	int ret;

	if (!address || !in4_pton(address, -1, (u8 *)&server.sin_addr, -1, NULL))
		return -EINVAL;
	client = rdma_create_id(current->nsproxy->net_ns, rpcrdma_cm_event_handler, NULL,
				RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(client))
		return PTR_ERR(client);
	ret = rdma_resolve_addr(client, NULL, (struct sockaddr *)&server, TIMEOUT_MS);
	if (!ret && !wait_for_completion_timeout(&connected, msecs_to_jiffies(2 * TIMEOUT_MS)))
		ret = -ETIMEDOUT;
	ret = ret ?: failure;
	if (ret)
		rdma_destroy_id(client);
	return ret;
}
module_init(look_alike_init);

static void __exit look_alike_exit(void)
{
	rdma_destroy_id(client);
}
module_exit(look_alike_exit);

MODULE_DESCRIPTION("A client with functions named like those of NFS and of rdma_cm");
MODULE_LICENSE("GPL");
