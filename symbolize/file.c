// SPDX-License-Identifier: Apache-2.0
/* file: identity and segments of a file, see symbolize/file.h. */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/elf/packed.h"
#include "symbolize/elf/slot.h"
#include "symbolize/file.h"

#define FILE_ID_BLOCK 4096
#define FILE_PLAIN_MAX (96U << 20) /* bytes of a file after decompression */
#define KERNEL_NOTES "/sys/kernel/notes"

static int file_id(struct symbolizer_src *src, uint8_t *id)
{
	uint8_t block[FILE_ID_BLOCK], digest[SHA256_DIGEST_SIZE];
	size_t len = (size_t)MIN((uint64_t)FILE_ID_BLOCK, src->size);
	uint64_t size = src->size; /* hosts are little endian, see elf.c */
	struct sha256_ctx sha;
	int err;

	sha256_init(&sha);
	err = symbolizer_src_read(src, 0, block, len);
	if (err)
		return err;
	sha256_update(&sha, len, block);
	err = symbolizer_src_read(src, size - len, block, len);
	if (err)
		return err;
	sha256_update(&sha, len, block);
	sha256_update(&sha, sizeof(size), (uint8_t *)&size);
	sha256_digest(&sha, sizeof(digest), digest);
	memcpy(id, digest, SYMBOLIZER_FILE_ID_LEN);
	return 0;
}

static int file_segments(struct symbolizer_file *f,
			 const struct symbolizer_elf *e)
{
	f->segments = calloc(e->n_loads + 1, sizeof(*f->segments));
	if (!f->segments)
		return -ENOMEM;
	if (e->type == ET_REL)
		f->segments[f->n_segments++].size = e->absent.size;
	for (size_t i = 0; i < e->n_loads; i++)
		if (e->loads[i].exec)
			f->segments[f->n_segments++] =
				(struct symbolizer_segment){
					.vaddr = e->loads[i].vaddr,
					.offset = e->loads[i].offset,
					.size = e->loads[i].size,
				};
	return 0;
}

int symbolizer_file_src(struct symbolizer_file *f, struct symbolizer_src *src)
{
	int err = 0;

	if (f->image) {
		symbolizer_src_mem(src, f->image, f->ident.size);
		return 0;
	}
	symbolizer_src_fd(src, f->fd, f->ident.size);
	if (f->object && !f->plain)
		err = symbolizer_packed_read(src, 0, src->size, FILE_PLAIN_MAX,
					     &f->plain, &f->plain_len);
	if (f->plain)
		symbolizer_src_mem(src, f->plain, f->plain_len);
	return err == -ENODATA ? 0 : err;
}

int symbolizer_file_load(struct symbolizer_file *f, struct symbolizer_src *src)
{
	struct symbolizer_elf e;
	int err = f->object ? symbolizer_elf_init_any(&e, src)
			    : symbolizer_elf_init(&e, src);

	f->damaged = e.damaged;
	if (err)
		return err;
	err = file_id(src, f->ident.file_id);
	if (!err)
		err = file_segments(f, &e);
	f->ident.size = src->size;
	f->ident.build_id_len = (uint8_t)symbolizer_elf_build_id(
		&e, f->ident.build_id, sizeof(f->ident.build_id));
	f->damaged = e.damaged;
	/* A file whose tables cannot be read has an identity all the same. */
	if (!err && (symbolizer_slot_find(&e, &f->slot) ||
		     !symbolizer_slot_valid(&f->slot)))
		memset(&f->slot, 0, sizeof(f->slot));
	symbolizer_elf_fini(&e);
	return err;
}

static int64_t file_ns(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000000000LL + t->tv_nsec;
}

bool symbolizer_changed(const struct symbolizer_file *f)
{
	const struct symbolizer_ident *id = &f->ident;
	struct statx st;

	if (f->fd < 0 || statx(f->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
			       STATX_SIZE | STATX_MTIME | STATX_CTIME, &st))
		return false;
	return st.stx_size != id->size ||
	       file_ns(&st.stx_mtime) != id->mtime_ns ||
	       file_ns(&st.stx_ctime) != id->ctime_ns;
}

int symbolizer_file_dup(const struct symbolizer_file *f)
{
	int fd = f->fd < 0 ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 3);

	if (f->fd < 0)
		return -EBADF;
	return fd < 0 ? -errno : fd;
}

static void file_refreshed(struct symbolizer_file *f, const struct statx *st)
{
	struct symbolizer_ident *id = &f->ident;
	int64_t mtime = file_ns(&st->stx_mtime),
		ctime = file_ns(&st->stx_ctime);
	bool written = st->stx_size != id->size || mtime != id->mtime_ns;

	if (written && st->stx_size <= id->size)
		f->written++;
	if (!written && ctime != id->ctime_ns)
		f->moved++;
	f->unlinked = !st->stx_nlink;
	id->size = st->stx_size;
	id->mtime_ns = mtime;
	id->ctime_ns = ctime;
}

void symbolizer_refresh(struct symbolizer_file *f, struct symbolizer_fresh *out)
{
	struct statx st;

	if (f->fd >= 0 &&
	    !statx(f->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		   STATX_SIZE | STATX_MTIME | STATX_CTIME | STATX_NLINK, &st))
		file_refreshed(f, &st);
	*out = (struct symbolizer_fresh){ f->ident.size, f->written, f->moved,
					  f->unlinked };
}

struct symbolizer_file *symbolizer_file_new(void)
{
	struct symbolizer_file *f = calloc(1, sizeof(*f));

	if (f)
		f->fd = -1;
	return f;
}

void symbolizer_file_free(struct symbolizer_file *f)
{
	if (!f)
		return;
	symbolizer_names_close(f->names);
	kallsyms_free(f->ksyms);
	kallsyms_past_fini(&f->past);
	symbolizer_file_code_free(f);
	if (f->fd >= 0)
		close(f->fd);
	free(f->segments);
	free(f->plain);
	free(f->path);
	strbuf_fini(&f->witness);
	free(f);
}

int symbolizer_file_kernel(struct symbolizer_file **fp, const char *kallsyms)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct symbolizer_src src;
	char notes[4096];
	ssize_t n;

	if (!f)
		return -ENOMEM;
	f->kallsyms = kallsyms;
	n = procfs_read(AT_FDCWD, KERNEL_NOTES, notes, sizeof(notes));
	symbolizer_src_mem(&src, notes, n > 0 ? (size_t)n : 0);
	f->ident.build_id_len =
		(uint8_t)symbolizer_elf_note_id(&src, 0, src.size, 4,
						f->ident.build_id,
						sizeof(f->ident.build_id));
	*fp = f;
	return 0;
}

/* The length of the image, which the kernel mapped, so it is valid. */
static size_t vdso_size(const void *image)
{
	const Elf64_Ehdr *eh = image;
	const Elf64_Phdr *ph;
	uint64_t end = eh->e_shoff + (uint64_t)eh->e_shnum * eh->e_shentsize;

	ph = (const void *)((const char *)image + eh->e_phoff);
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD)
			end = MAX(end, ph[i].p_offset + ph[i].p_filesz);
	return end;
}

int symbolizer_file_vdso(struct symbolizer_file **fp)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct symbolizer_src src;
	int err = 0;

	if (!f)
		return -ENOMEM;
	f->image = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!f->image) {
		f->names_err = -ENOENT;
	} else {
		f->ident.size = vdso_size(f->image);
		symbolizer_src_mem(&src, f->image, f->ident.size);
		err = symbolizer_file_load(f, &src);
	}
	if (err) {
		symbolizer_file_free(f);
		return err;
	}
	*fp = f;
	return 0;
}

const struct symbolizer_ident *
symbolizer_ident(const struct symbolizer_file *file)
{
	return &file->ident;
}

const struct symbolizer_segment *
symbolizer_segments(const struct symbolizer_file *file, size_t *np)
{
	*np = file->n_segments;
	return file->segments;
}

const struct symbolizer_slot *
symbolizer_slot(const struct symbolizer_file *file)
{
	return &file->slot;
}

uint32_t symbolizer_relocation(const struct symbolizer_file *file)
{
	return file->relocation;
}

uint64_t symbolizer_symbol_bytes(const struct symbolizer_file *file)
{
	return file->symbol_bytes;
}
