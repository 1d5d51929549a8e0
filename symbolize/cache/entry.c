// SPDX-License-Identifier: Apache-2.0
/* entry: see symbolize/cache/entry.h. */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "symbolize/cache/entry.h"

#define ENTRY_MAGIC "profdC2\n"

_Static_assert(sizeof(struct entry_head) == 80, "no hole in the head");

static uint8_t build[ENTRY_ID_LEN];

/* Of the first object, the program: its notes, which have the build id. */
static int build_of_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct sha256_ctx *sha = arg;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			sha256_update(sha, info->dlpi_phdr[i].p_memsz,
				      (const uint8_t *)info->dlpi_addr +
					      info->dlpi_phdr[i].p_vaddr);
	return 1;
}

static void build_init(void)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, strlen(PROFD_VERSION),
		      (const uint8_t *)PROFD_VERSION);
	dl_iterate_phdr(build_of_program, &sha);
	sha256_digest(&sha, sizeof(digest), digest);
	memcpy(build, digest, sizeof(build));
}

const uint8_t *entry_build(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, build_init);
	return build;
}

void entry_key(struct entry_id *id, enum entry_kind kind,
	       const struct symbolizer_ident *ident, const char *const *dirs)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, 1, &ident->build_id_len);
	sha256_update(&sha, ident->build_id_len, ident->build_id);
	sha256_update(&sha, sizeof(ident->file_id), ident->file_id);
	sha256_update(&sha, sizeof(ident->content), ident->content);
	for (; *dirs; dirs++)
		sha256_update(&sha, strlen(*dirs) + 1, (const uint8_t *)*dirs);
	sha256_digest(&sha, sizeof(digest), digest);
	id->kind = kind;
	memcpy(id->key, digest, sizeof(id->key));
}

static uint32_t entry_crc(const struct entry_head *h, const void *witness,
			  const void *payload, size_t len)
{
	struct entry_head head = *h;
	uLong crc = crc32(0, NULL, 0);

	head.crc = 0;
	crc = crc32_z(crc, (const void *)&head, sizeof(head));
	/* It begins anew with a NULL. */
	if (h->witness_len)
		crc = crc32_z(crc, witness, h->witness_len);
	if (len && h->kind != ENTRY_UNITS)
		crc = crc32_z(crc, payload, len);
	return (uint32_t)crc;
}

void entry_seal(struct entry_head *h, const struct entry_id *id,
		const void *witness, size_t witness_len, const void *payload,
		size_t len)
{
	memcpy(h->magic, ENTRY_MAGIC, sizeof(h->magic));
	memcpy(h->build, entry_build(), sizeof(h->build));
	memcpy(h->key, id->key, sizeof(h->key));
	h->kind = id->kind;
	if (!h->made_s)
		h->made_s = time(NULL);
	h->witness_len = (uint32_t)witness_len;
	h->size = sizeof(*h) + witness_len + len;
	h->pad = 0;
	h->crc = entry_crc(h, witness, payload, len);
}

int entry_check_front(struct entry *out, const struct entry_id *id,
		      const uint8_t *bytes, size_t len, uint64_t size)
{
	const struct entry_head *h = (const void *)bytes;

	if (len < sizeof(*h) || h->size != size || h->witness_len % 8 ||
	    h->witness_len > len - sizeof(*h))
		return -EBADMSG;
	out->head = h;
	out->witness = bytes + sizeof(*h);
	out->payload = out->witness + h->witness_len;
	out->len = len - sizeof(*h) - h->witness_len;
	/* Another format may have its checksum elsewhere. */
	if (memcmp(h->magic, ENTRY_MAGIC, sizeof(h->magic)) != 0 ||
	    h->crc != entry_crc(h, out->witness, out->payload, out->len) ||
	    h->kind != (uint32_t)id->kind || h->pad ||
	    memcmp(h->key, id->key, sizeof(h->key)) != 0)
		return -EBADMSG;
	if (memcmp(h->build, entry_build(), sizeof(h->build)) != 0 ||
	    entry_aged(out))
		return -ESTALE;
	return 0;
}

int entry_check(struct entry *out, const struct entry_id *id,
		const uint8_t *bytes, size_t len)
{
	return entry_check_front(out, id, bytes, len, len);
}

/* One of the future is used: the clock of this boot may be in the past. */
bool entry_aged(const struct entry *e)
{
	return e->head->made_s < time(NULL) - ENTRY_AGE_S;
}

bool entry_err_lasts(int err)
{
	return err == -ENODATA || err == -ENOTSUP || err == -EFBIG;
}
