// SPDX-License-Identifier: GPL-2.0
/*
 * Finds members of the structures of another module by their names in the
 * kernel's BTF. No header declares some of these structures, and others may
 * differ from the header that this module was built with.
 */

#include <linux/btf.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "probes.h"

#if RPCRDMA_CM_HAS_BTF

/* The types and the strings of a BTF. */
struct btf_part {
	const void *types;
	u32 types_len;
	const char *strings;
	u32 strings_len;
};

/*
 * A BTF and its parts. The BTF of a module extends that of the kernel, which is
 * @base then. @base has no strings if @btf extends no other BTF.
 */
struct btf_parts {
	const struct btf *btf;
	struct btf_part base;
	struct btf_part own;
	u32 first;		/* the number of the first type of @own */
};

/*
 * Finds the parts of a BTF whose first type is at @types. The header directly in
 * front of the types has their lengths. Its own length depends on the kernel.
 */
static int find_part(const void *types, struct btf_part *part)
{
	static const u32 header_lengths[] = {
		offsetofend(struct btf_header, str_len),
		sizeof(struct btf_header),
	};
	struct btf_header header = {};
	size_t i;

	if (!types)
		return -ENOENT;
	for (i = 0; i < ARRAY_SIZE(header_lengths); i++) {
		if (copy_from_kernel_nofault(&header, types - header_lengths[i], header_lengths[i]))
			continue;
		if (header.magic == BTF_MAGIC && header.hdr_len == header_lengths[i] &&
		    header.type_off == 0 && header.str_off >= header.type_len) {
			part->types = types;
			part->types_len = header.type_len;
			part->strings = types + header.str_off;
			part->strings_len = header.str_len;
			return 0;
		}
	}
	return -ENOENT;
}

static bool has_type(const struct btf_part *part, const void *type)
{
	return type >= part->types && type < part->types + part->types_len;
}

/*
 * Finds the parts of @btf, of which type @id is an own type. No exported function
 * returns the name of a type or member, so the strings have to be found. The types
 * of a BTF are contiguous, in the order of their numbers, which begin with 1.
 */
static int find_parts(struct btf_parts *parts, const struct btf *btf, u32 id)
{
	const void *type = btf_type_by_id(btf, id);
	const void *before;
	int ret;

	parts->btf = btf;
	ret = find_part(btf_type_by_id(btf, 1), &parts->base);
	if (ret)
		return ret;
	if (has_type(&parts->base, type)) {
		parts->own = parts->base;
		parts->base.strings_len = 0;
		parts->first = 1;
		return 0;
	}
	for (; id > 1; id--, type = before) {
		before = btf_type_by_id(btf, id - 1);
		if (has_type(&parts->base, before))
			break;
	}
	parts->first = id;
	return find_part(type, &parts->own);
}

static const char *name_at(const struct btf_parts *parts, u32 offset)
{
	if (offset < parts->base.strings_len)
		return parts->base.strings + offset;
	offset -= parts->base.strings_len;
	if (offset < parts->own.strings_len)
		return parts->own.strings + offset;
	return "";
}

/* Returns the size of an array of characters, and 0 for any other array. */
static u32 size_of_text(const struct btf *btf, const struct btf_type *type)
{
	const struct btf_type *element = btf_type_by_id(btf, btf_array(type)->type);

	if (!element || btf_kind(element) != BTF_KIND_INT || element->size != 1)
		return 0;
	return btf_array(type)->nelems;
}

/* Returns the size of a type, and 0 for a type that no wanted member has. */
static u32 size_of(const struct btf *btf, u32 id)
{
	const struct btf_type *type;
	int depth;

	for (depth = 0; depth < 16; depth++) {
		type = btf_type_by_id(btf, id);
		if (!type)
			return 0;
		switch (btf_kind(type)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			id = type->type;
			continue;
		case BTF_KIND_PTR:
			return sizeof(void *);
		case BTF_KIND_INT:
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
			return type->size;
		case BTF_KIND_ARRAY:
			return size_of_text(btf, type);
		default:
			return 0;
		}
	}
	return 0;
}

static const struct btf_type *structure_by_name(const struct btf_parts *parts, const char *name)
{
	const struct btf_type *type;
	u32 id;

	for (id = parts->first; (type = btf_type_by_id(parts->btf, id)); id++) {
		if (btf_kind(type) == BTF_KIND_STRUCT &&
		    !strcmp(name_at(parts, type->name_off), name))
			return type;
	}
	return NULL;
}

/* Finds the member whose name is the first @len characters of @name. */
static const struct btf_member *member_by_name(const struct btf_parts *parts,
					       const struct btf_type *type,
					       const char *name, size_t len)
{
	const struct btf_member *member;
	const char *found;
	u32 i;

	for_each_member(i, type, member) {
		found = name_at(parts, member->name_off);
		if (!strncmp(found, name, len) && !found[len])
			return member;
	}
	return NULL;
}

/* Sets the offset of @wanted, a member of @type or of a structure inside of it. */
static int find_member(const struct btf_parts *parts, const struct btf_type *type,
		       struct rpcrdma_cm_member *wanted)
{
	const struct btf_member *member;
	const char *name = wanted->path;
	u32 offset = 0, bits;
	size_t len;

	for (;;) {
		if (!type || btf_kind(type) != BTF_KIND_STRUCT)
			return -ENOENT;
		len = strcspn(name, ".");
		member = member_by_name(parts, type, name, len);
		if (!member || __btf_member_bitfield_size(type, member))
			return -ENOENT;
		bits = __btf_member_bit_offset(type, member);
		if (bits % BITS_PER_BYTE)
			return -ENOENT;
		offset += bits / BITS_PER_BYTE;
		if (!name[len])
			break;
		name += len + 1;
		type = btf_type_by_id(parts->btf, member->type);
	}
	if (wanted->size && size_of(parts->btf, member->type) != wanted->size)
		return -ENOENT;
	wanted->offset = offset;
	return 0;
}

/*
 * Whether the BTF is that of a module, or of the kernel if @module is NULL: other modules may
 * have structures of the same names. struct btf holds the name of its module. That member, too,
 * is found by BTF.
 */
static bool is_of(const char *module, const struct btf_parts *parts)
{
	struct rpcrdma_cm_member member = { "btf", "name", MODULE_NAME_LEN };
	struct btf_parts kernel;
	char name[MODULE_NAME_LEN];
	struct btf *btf;
	s32 id;

	if (!module)
		return parts->own.types == parts->base.types;

	id = bpf_find_btf_id(member.structure, BTF_KIND_STRUCT, &btf);
	if (id < 0 || find_parts(&kernel, btf, id) || kernel.base.types != kernel.own.types ||
	    find_member(&kernel, btf_type_by_id(btf, id), &member))
		return false;
	if (copy_from_kernel_nofault(name, (const void *)parts->btf + member.offset, sizeof(name)))
		return false;
	return !strncmp(name, module, sizeof(name));
}

/**
 * rpcrdma_cm_find_members() - find members of another module's structures
 * @module: the name of the module; NULL if it is built into the kernel
 * @members: the members to find; the offset of each is set
 * @n: the number of @members
 *
 * The offset becomes RPCRDMA_CM_NO_MEMBER if the structure has no such member, or the
 * member has another size.
 *
 * Looking up a type takes a reference on its BTF, and no exported function drops the
 * reference. So call this only once for each time that the module is loaded.
 *
 * Context: process context, may sleep.
 *
 * Return: 0, or a negative errno if the module has no BTF, the BTF cannot be read, or only another
 * module has a structure of that name.
 */
int rpcrdma_cm_find_members(const char *module, struct rpcrdma_cm_member *members, size_t n)
{
	const struct btf_type *type = NULL;
	struct btf_parts parts;
	struct btf *btf;
	size_t i;
	s32 id;
	int ret;

	id = bpf_find_btf_id(members[0].structure, BTF_KIND_STRUCT, &btf);
	if (id < 0)
		return id;
	ret = find_parts(&parts, btf, id);
	if (ret)
		return ret;
	if (!is_of(module, &parts))
		return -ENOENT;

	for (i = 0; i < n; i++) {
		if (!i || strcmp(members[i].structure, members[i - 1].structure))
			type = structure_by_name(&parts, members[i].structure);
		if (find_member(&parts, type, &members[i]))
			members[i].offset = RPCRDMA_CM_NO_MEMBER;
	}
	return 0;
}

#endif
