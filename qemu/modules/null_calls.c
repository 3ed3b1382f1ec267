// SPDX-License-Identifier: GPL-2.0
/*
 * For make bench only: NULL calls by the kernel's own RPC client over RDMA, to compare
 * with those of rpcrdma_cm. Connects when it is loaded, in the network namespace of the
 * process that loads it. Writing "COUNT JOBS" to its parameter call makes COUNT calls,
 * with JOBS of them under way at a time.
 */
#include <linux/cred.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nsproxy.h>
#include <linux/semaphore.h>
#include <linux/sunrpc/clnt.h>

static char *address;
module_param(address, charp, 0400);
MODULE_PARM_DESC(address, "The server's IPv4 address; its port is 20049");

static void encode_nothing(struct rpc_rqst *request, struct xdr_stream *xdr, const void *data)
{
}

static int decode_nothing(struct rpc_rqst *request, struct xdr_stream *xdr, void *data)
{
	return 0;
}

static const struct rpc_procinfo procedures[] = {
	{ .p_encode = encode_nothing, .p_decode = decode_nothing, .p_name = "NULL" },
};

static unsigned int counts[ARRAY_SIZE(procedures)];

static const struct rpc_version version = {
	.number = 3,
	.nrprocs = ARRAY_SIZE(procedures),
	.procs = procedures,
	.counts = counts,
};

static const struct rpc_version *versions[] = { [3] = &version };

static const struct rpc_program program;
static struct rpc_stat stat = { .program = &program };
static const struct rpc_program program = {
	.name = "nfs",
	.number = 100003,
	.nrvers = ARRAY_SIZE(versions),
	.version = versions,
	.stats = &stat,
};

static struct rpc_clnt *client;
static struct semaphore idle;
static int failure;

static void call_done(struct rpc_task *task, void *data)
{
	if (task->tk_status)
		WRITE_ONCE(failure, task->tk_status);
	up(&idle);
}

static const struct rpc_call_ops call_ops = { .rpc_call_done = call_done };

static int call(const char *value, const struct kernel_param *param)
{
	const struct rpc_message message = { .rpc_proc = &procedures[0] };
	unsigned int count, jobs, n;
	int ret = 0;

	if (!client || sscanf(value, "%u %u", &count, &jobs) != 2)
		return -EINVAL;
	if (jobs == 1) {
		for (n = 0; n < count && !ret; n++)
			ret = rpc_call_sync(client, &message, RPC_TASK_SOFT);
		return ret;
	}

	failure = 0;
	sema_init(&idle, jobs);
	for (n = 0; n < count; n++) {
		down(&idle);
		ret = rpc_call_async(client, &message, RPC_TASK_SOFT, &call_ops, NULL);
		if (ret) {
			up(&idle);
			break;
		}
	}
	for (n = 0; n < jobs; n++)
		down(&idle);
	return ret ?: failure;
}

static const struct kernel_param_ops call_param_ops = { .set = call };
module_param_cb(call, &call_param_ops, NULL, 0200);
MODULE_PARM_DESC(call, "COUNT JOBS: makes COUNT calls, JOBS of them at a time");

static int __init null_calls_init(void)
{
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(20049) };
	struct rpc_create_args args = {
		.net = current->nsproxy->net_ns,
		.protocol = XPRT_TRANSPORT_RDMA,
		.address = (struct sockaddr *)&server,
		.addrsize = sizeof(server),
		.program = &program,
		.version = version.number,
		.authflavor = RPC_AUTH_NULL,
		.cred = current_cred(),
	};

	if (!address || !in4_pton(address, -1, (u8 *)&server.sin_addr, -1, NULL))
		return -EINVAL;
	client = rpc_create(&args);
	return PTR_ERR_OR_ZERO(client);
}
module_init(null_calls_init);

static void __exit null_calls_exit(void)
{
	rpc_shutdown_client(client);
}
module_exit(null_calls_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The rpcrdma_cm authors");
MODULE_DESCRIPTION("NULL calls of the kernel's own RPC client over RDMA");
