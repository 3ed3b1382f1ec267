// SPDX-License-Identifier: GPL-2.0

#include <linux/in.h>
#include <linux/in6.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

#include "shim.h"

void trace_rpcrdma_cm_sent(u64 id, bool server, const u8 *octets, u8 len)
{
	trace_message_sent(id, server, octets, len);
}

void trace_rpcrdma_cm_parsed(u64 id, bool server, u8 outcome, u8 len, u8 offset,
			     u8 version, u32 send_size, u32 receive_size,
			     bool remote_invalidation)
{
	trace_message_parsed(id, server, outcome, len, offset, version,
			     send_size, receive_size, remote_invalidation);
}

/* Returns the size of an address. trace.rs passes IPv4 and IPv6 addresses only. */
static size_t sockaddr_len(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

void trace_rpcrdma_cm_negotiated(u64 id, bool server, u32 generation,
				 const struct sockaddr *local,
				 const struct sockaddr *remote,
				 u32 client_to_server, u32 server_to_client,
				 bool remote_invalidation)
{
	trace_connection_negotiated(id, server, generation,
				    local, sockaddr_len(local),
				    remote, sockaddr_len(remote),
				    client_to_server, server_to_client,
				    remote_invalidation);
}

void trace_rpcrdma_cm_closed(u64 id, bool server, u32 generation, int error)
{
	trace_connection_closed(id, server, generation, error);
}
