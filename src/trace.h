/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma_cm

#if !defined(RPCRDMA_CM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RPCRDMA_CM_TRACE_H

#include <linux/socket.h>
#include <linux/tracepoint.h>
#include <linux/trace_events.h>

#define show_role(server) ((server) ? "server" : "client")

/* The values of enum ParseOutcome in trace.rs. */
#define show_outcome(outcome)			\
	__print_symbolic(outcome,		\
		{ 0, "absent" },		\
		{ 1, "present" },		\
		{ 2, "unrecognized-version" },	\
		{ 3, "truncated" })

TRACE_EVENT(message_sent,
	TP_PROTO(u64 id, bool server, const u8 *octets, u8 len),

	TP_ARGS(id, server, octets, len),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(bool, server)
		__field(u8, len)
		__dynamic_array(u8, octets, len)
	),

	TP_fast_assign(
		__entry->id = id;
		__entry->server = server;
		__entry->len = len;
		if (len)
			memcpy(__get_dynamic_array(octets), octets, len);
	),

	TP_printk("id=%llu role=%s length=%u octets=%s",
		  __entry->id, show_role(__entry->server), __entry->len,
		  __print_hex_str(__get_dynamic_array(octets), __entry->len))
);

TRACE_EVENT(message_parsed,
	TP_PROTO(u64 id, bool server, u8 outcome, u8 len, u8 offset, u8 version,
		 u32 send_size, u32 receive_size, bool remote_invalidation),

	TP_ARGS(id, server, outcome, len, offset, version, send_size,
		receive_size, remote_invalidation),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(bool, server)
		__field(u8, outcome)
		__field(u8, len)
		__field(u8, offset)
		__field(u8, version)
		__field(u32, send_size)
		__field(u32, receive_size)
		__field(bool, remote_invalidation)
	),

	TP_fast_assign(
		__entry->id = id;
		__entry->server = server;
		__entry->outcome = outcome;
		__entry->len = len;
		__entry->offset = offset;
		__entry->version = version;
		__entry->send_size = send_size;
		__entry->receive_size = receive_size;
		__entry->remote_invalidation = remote_invalidation;
	),

	TP_printk("id=%llu role=%s outcome=%s length=%u offset=%u version=%u send_size=%u receive_size=%u remote_invalidation=%u",
		  __entry->id, show_role(__entry->server),
		  show_outcome(__entry->outcome), __entry->len, __entry->offset,
		  __entry->version, __entry->send_size, __entry->receive_size,
		  __entry->remote_invalidation)
);

TRACE_EVENT(connection_negotiated,
	TP_PROTO(u64 id, bool server, u32 generation,
		 const struct sockaddr *local, size_t local_len,
		 const struct sockaddr *remote, size_t remote_len,
		 u32 client_to_server, u32 server_to_client,
		 bool remote_invalidation),

	TP_ARGS(id, server, generation, local, local_len, remote, remote_len,
		client_to_server, server_to_client, remote_invalidation),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(bool, server)
		__field(u32, generation)
		__field(u32, client_to_server)
		__field(u32, server_to_client)
		__field(bool, remote_invalidation)
		__sockaddr(local, local_len)
		__sockaddr(remote, remote_len)
	),

	TP_fast_assign(
		__entry->id = id;
		__entry->server = server;
		__entry->generation = generation;
		__entry->client_to_server = client_to_server;
		__entry->server_to_client = server_to_client;
		__entry->remote_invalidation = remote_invalidation;
		__assign_sockaddr(local, local, local_len);
		__assign_sockaddr(remote, remote, remote_len);
	),

	TP_printk("id=%llu role=%s generation=%u local=%pISpc remote=%pISpc client_to_server=%u server_to_client=%u remote_invalidation=%u",
		  __entry->id, show_role(__entry->server), __entry->generation,
		  __get_sockaddr(local), __get_sockaddr(remote),
		  __entry->client_to_server, __entry->server_to_client,
		  __entry->remote_invalidation)
);

TRACE_EVENT(connection_closed,
	TP_PROTO(u64 id, bool server, u32 generation, int error),

	TP_ARGS(id, server, generation, error),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(bool, server)
		__field(u32, generation)
		__field(int, error)
	),

	TP_fast_assign(
		__entry->id = id;
		__entry->server = server;
		__entry->generation = generation;
		__entry->error = error;
	),

	TP_printk("id=%llu role=%s generation=%u error=%d",
		  __entry->id, show_role(__entry->server), __entry->generation,
		  __entry->error)
);

#endif /* RPCRDMA_CM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
