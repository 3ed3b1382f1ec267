// SPDX-License-Identifier: GPL-2.0
/*
 * The C code that the parser is compared with: a check like that of xprtrdma, which
 * looks at offset 0 only and does not check the length; and the simplest search that
 * looks at every offset and checks the length.
 */
#include <stddef.h>
#include <string.h>

struct message {
	unsigned char identifier[4];
	unsigned char version;
	unsigned char flags;
	unsigned char send_size;
	unsigned char recv_size;
};

struct offer {
	unsigned int send_size;
	unsigned int recv_size;
	int remote_invalidation;
};

static const unsigned char identifier[4] = { 0xf6, 0xab, 0x0e, 0x18 };

static int read_message(const struct message *message, struct offer *offer)
{
	offer->send_size = 1024;
	offer->recv_size = 1024;
	offer->remote_invalidation = 0;
	if (memcmp(message->identifier, identifier, sizeof(identifier)) || message->version != 1)
		return 0;
	offer->send_size = (message->send_size + 1u) << 10;
	offer->recv_size = (message->recv_size + 1u) << 10;
	offer->remote_invalidation = message->flags & 1;
	return 1;
}

int check_at_start(const void *private_data, size_t len, struct offer *offer)
{
	(void)len;
	return private_data && read_message(private_data, offer);
}

int search(const unsigned char *octets, size_t len, struct offer *offer)
{
	size_t at;

	for (at = 0; at + sizeof(struct message) <= len; at++)
		if (read_message((const void *)(octets + at), offer))
			return 1;
	return 0;
}
