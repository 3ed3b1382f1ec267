// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel's RPC-over-RDMA client goes by. It keeps that in a structure
 * of its own, which no header shows: the members are found by their names, in
 * the kernel's BTF.
 */

#include <linux/btf.h>
#include <linux/module.h>
#include <linux/sunrpc/xprt.h>
#include <linux/uaccess.h>
#include <rdma/rdma_cm.h>

#include "probes.h"

#if IS_ENABLED(CONFIG_DEBUG_INFO_BTF) && IS_ENABLED(CONFIG_BPF_SYSCALL)

/* The types or the strings of a BTF, or of the one that it extends. */
struct section {
	const void *types;
	u32 types_len;
	const char *strings;
	u32 strings_len;
};

/* Where its types begin; in front of them is the header that tells the rest. */
static int find_section(const void *types, struct section *section)
{
	static const u32 header_lengths[] = {
		offsetofend(struct btf_header, str_len),
		sizeof(struct btf_header),
	};
	struct btf_header header = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(header_lengths); i++) {
		if (copy_from_kernel_nofault(&header, types - header_lengths[i], header_lengths[i]))
			continue;
		if (header.magic == BTF_MAGIC && header.hdr_len == header_lengths[i] &&
		    header.type_off == 0 && header.str_off >= header.type_len) {
			section->types = types;
			section->types_len = header.type_len;
			section->strings = types + header.str_off;
			section->strings_len = header.str_len;
			return 0;
		}
	}
	return -ENOENT;
}

/*
 * The names of members are in strings that no exported function reads. The
 * types of a BTF are in one piece, in the order of their numbers.
 */
static int find_sections(const struct btf *btf, u32 id, struct section *base, struct section *own)
{
	const void *type = btf_type_by_id(btf, id);
	const void *before;
	int ret;

	ret = find_section(btf_type_by_id(btf, 1), base);
	if (ret)
		return ret;
	if (type >= base->types && type < base->types + base->types_len) {
		*own = *base;
		base->strings_len = 0;
		return 0;
	}
	for (; id > 1; type = before) {
		before = btf_type_by_id(btf, --id);
		if (before >= base->types && before < base->types + base->types_len)
			break;
	}
	return find_section(type, own);
}

/*
 * Finds members of a structure: where they are, in octets from its start.
 *
 * Looking a type up takes a reference on its BTF, which nothing that is
 * exported gives back. It is done once for each time that rpcrdma comes.
 */
static int find_members(const char *structure, const char *const *names, u32 *offsets, size_t n)
{
	const struct btf_member *member;
	const struct btf_type *type;
	struct section base, own;
	size_t found = 0, j;
	struct btf *btf;
	s32 id;
	u32 i;
	int ret;

	id = bpf_find_btf_id(structure, BTF_KIND_STRUCT, &btf);
	if (id < 0)
		return id;
	ret = find_sections(btf, id, &base, &own);
	if (ret)
		return ret;

	type = btf_type_by_id(btf, id);
	for_each_member(i, type, member) {
		const char *name;

		if (member->name_off < base.strings_len)
			name = base.strings + member->name_off;
		else if (member->name_off - base.strings_len < own.strings_len)
			name = own.strings + member->name_off - base.strings_len;
		else
			continue;
		for (j = 0; j < n; j++) {
			if (strcmp(name, names[j]))
				continue;
			offsets[j] = __btf_member_bit_offset(type, member) / 8;
			found++;
		}
	}
	return found == n ? 0 : -ENOENT;
}

/* Members of struct rpcrdma_ep (net/sunrpc/xprtrdma/xprt_rdma.h). */
enum {
	EP_ID,
	EP_XPRT,
	EP_CM_PRIVATE,
	EP_CONNECT_STATUS,
	EP_INLINE_SEND,
	EP_INLINE_RECV,
	EP_MEMBERS,
};

static const char *const member_names[] = {
	[EP_ID] = "re_id",
	[EP_XPRT] = "re_xprt",
	[EP_CM_PRIVATE] = "re_cm_private",
	[EP_CONNECT_STATUS] = "re_connect_status",
	[EP_INLINE_SEND] = "re_inline_send",
	[EP_INLINE_RECV] = "re_inline_recv",
};

static u32 member_offsets[EP_MEMBERS];
static bool members_known;

static void know_members(void)
{
	if (members_known ||
	    find_members("rpcrdma_ep", member_names, member_offsets, EP_MEMBERS))
		return;
	/* For who sees the flag, the offsets are there. */
	smp_store_release(&members_known, true);
}

/* Where the client is a module, it may come and go, and be another the next time. */
static int module_changed(struct notifier_block *nb, unsigned long action, void *data)
{
	const struct module *mod = data;

	if (strcmp(mod->name, "rpcrdma"))
		return NOTIFY_DONE;
	if (action == MODULE_STATE_LIVE)
		know_members();
	else if (action == MODULE_STATE_GOING)
		WRITE_ONCE(members_known, false);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = module_changed };

int rpcrdma_cm_xprtrdma_register(void)
{
	int ret = register_module_notifier(&module_notifier);

	if (!ret)
		know_members();
	return ret;
}

void rpcrdma_cm_xprtrdma_unregister(void)
{
	unregister_module_notifier(&module_notifier);
}

static long copy_member(void *to, const void *ep, int member, size_t len)
{
	return copy_from_kernel_nofault(to, ep + member_offsets[member], len);
}

/*
 * The client frees the structure before the id, but only after the id's queue
 * pair: what was copied while there is one was there. A copy of anything else
 * cannot fault, and is not used. Of the transport that has connected, only a
 * number is copied, which may be wrong while it is unmounted.
 *
 * Return: 0; -EOPNOTSUPP where the structure cannot be read, -ENOTCONN where it
 * is not there or about to go.
 */
int rpcrdma_cm_xprtrdma_describe(struct rpcrdma_cm_seen *seen, const struct rdma_cm_id *id)
{
	const void *ep = READ_ONCE(id->context);
	u32 inline_send, inline_receive;
	const struct rdma_cm_id *ep_id;
	const struct rpc_xprt *xprt;
	unsigned long connects;
	int connect_status;
	u8 message[8];

	/* Pairs with know_members(). */
	if (!smp_load_acquire(&members_known))
		return -EOPNOTSUPP;

	if (copy_member(&ep_id, ep, EP_ID, sizeof(ep_id)) || ep_id != id ||
	    copy_member(&xprt, ep, EP_XPRT, sizeof(xprt)) ||
	    copy_member(message, ep, EP_CM_PRIVATE, sizeof(message)) ||
	    copy_member(&connect_status, ep, EP_CONNECT_STATUS, sizeof(connect_status)) ||
	    copy_member(&inline_send, ep, EP_INLINE_SEND, sizeof(inline_send)) ||
	    copy_member(&inline_receive, ep, EP_INLINE_RECV, sizeof(inline_receive)) ||
	    get_kernel_nofault(connects, &xprt->stat.connect_count))
		return -ENOTCONN;
	/* The copies come before what makes them good. */
	smp_rmb();
	if (!READ_ONCE(id->qp))
		return -ENOTCONN;

	/* Where it is established, it is counted, and the sizes are final. */
	seen->generation = connects;
	if (connect_status == 1) {
		seen->inline_send = inline_send;
		seen->inline_receive = inline_receive;
	} else if (connect_status == 0) {
		seen->generation++;
		seen->connecting = true;
	}
	if (seen->happening == RPCRDMA_CM_EXISTING) {
		seen->len = sizeof(message);
		memcpy(seen->private_data, message, sizeof(message));
	}
	return 0;
}

#else

int rpcrdma_cm_xprtrdma_register(void)
{
	return 0;
}

void rpcrdma_cm_xprtrdma_unregister(void)
{
}

int rpcrdma_cm_xprtrdma_describe(struct rpcrdma_cm_seen *seen, const struct rdma_cm_id *id)
{
	return -EOPNOTSUPP;
}

#endif
