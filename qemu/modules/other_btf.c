// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: while this module is loaded, the BTF of rpcrdma or rdma_ucm says that the
 * members of one structure have other sizes.
 */
#include <linux/btf.h>
#include <linux/module.h>
#include <linux/slab.h>

static char *structure = "svcxprt_rdma";
module_param(structure, charp, 0);
MODULE_PARM_DESC(structure, "its name");

static struct btf_member *members, *original;
static u32 n;

static int __init other_btf_init(void)
{
	const struct btf_type *type;
	struct btf *btf;
	s32 id;
	u32 i;

	/* The BTF of what is built in is read-only. */
	if (!IS_MODULE(CONFIG_SUNRPC_XPRT_RDMA) || !IS_MODULE(CONFIG_INFINIBAND_USER_ACCESS))
		return -EOPNOTSUPP;
	id = bpf_find_btf_id(structure, BTF_KIND_STRUCT, &btf);
	if (id < 0)
		return id;
	type = btf_type_by_id(btf, id);
	members = btf_members(type);
	n = btf_vlen(type);
	original = kmemdup_array(members, n, sizeof(*members), GFP_KERNEL);
	if (!original)
		return -ENOMEM;
	/* Members that are structures keep their types, through which nested ones are found. */
	for (i = 0; i < n; i++) {
		if (!btf_type_is_struct(btf_type_by_id(btf, members[i].type)))
			members[i].type = id;
	}
	return 0;
}
module_init(other_btf_init);

static void __exit other_btf_exit(void)
{
	memcpy(members, original, n * sizeof(*members));
	kfree(original);
}
module_exit(other_btf_exit);

MODULE_DESCRIPTION("Changes the sizes of members in BTF");
MODULE_LICENSE("GPL");
