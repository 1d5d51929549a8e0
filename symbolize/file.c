// SPDX-License-Identifier: Apache-2.0
/* file: identity and opening, see symbolize/file.h. */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/file.h"

#define FILE_ID_BLOCK 4096
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
	struct symbolizer_segment *s;

	f->segments = calloc(e->n_loads + 1, sizeof(*f->segments));
	if (!f->segments)
		return -ENOMEM;
	for (size_t i = 0; i < e->n_loads; i++) {
		if (!e->loads[i].exec)
			continue;
		s = &f->segments[f->n_segments++];
		s->vaddr = e->loads[i].vaddr;
		s->offset = e->loads[i].offset;
		s->size = e->loads[i].size;
	}
	return 0;
}

/* Identity and segments; *damaged as for symbolizer_file_open(). */
static int file_load(struct symbolizer_file *f, struct symbolizer_src *src,
		     bool *damaged)
{
	struct symbolizer_elf e;
	int err = symbolizer_elf_init(&e, src);

	*damaged = e.damaged;
	if (err)
		return err;
	err = file_id(src, f->ident.file_id);
	if (!err)
		err = file_segments(f, &e);
	f->ident.size = src->size;
	f->ident.build_id_len = (uint8_t)symbolizer_elf_build_id(
		&e, f->ident.build_id, sizeof(f->ident.build_id));
	f->damaged = e.damaged;
	symbolizer_elf_fini(&e);
	return err;
}

static struct symbolizer_file *file_new(void)
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
	symbolizer_file_drop_index(f);
	if (f->fd >= 0)
		close(f->fd);
	free(f->segments);
	free(f);
}

/* Takes 'fd' over, also when it fails. */
static int file_from_fd(struct symbolizer_file **fp, int fd, bool *damaged)
{
	struct symbolizer_file *f = file_new();
	struct symbolizer_src src;
	struct stat st;
	int err;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	f->fd = fd;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err) {
		symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
		err = file_load(f, &src, damaged);
	}
	if (err) {
		symbolizer_file_free(f);
		return err;
	}
	f->ident.dev = st.st_dev;
	f->ident.ino = st.st_ino;
	f->ident.mtime_ns =
		st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	*fp = f;
	return 0;
}

static bool same_build_id(const struct symbolizer_open_req *req,
			  const struct symbolizer_ident *id)
{
	size_t len = MIN(req->build_id_len, (size_t)SYMBOLIZER_BUILD_ID_MAX);

	return id->build_id_len == len &&
	       memcmp(id->build_id, req->build_id, len) == 0;
}

/* Whether the mapping in the process is of this very file, as of now. */
static bool mapping_is(const struct symbolizer_open_req *req,
		       const struct symbolizer_ident *id)
{
	int fd = symbolizer_open_way(req, SYMBOLIZER_BY_MAPPING);
	struct stat st;
	bool same;

	if (fd < 0)
		return false;
	same = fstat(fd, &st) == 0 && st.st_dev == id->dev &&
	       st.st_ino == id->ino;
	close(fd);
	return same;
}

/*
 * Whether this is the file the kernel spoke of. Device and inode are compared
 * only where there is no build id, and where the file system may call them
 * otherwise in a mapping than in stat(), the mapping itself is asked.
 */
static bool file_is(const struct symbolizer_open_req *req,
		    const struct symbolizer_file *f)
{
	if (req->build_id_len)
		return same_build_id(req, &f->ident);
	if (!req->ino)
		return true;
	if (f->ident.dev == req->dev && f->ident.ino == req->ino)
		return true;
	return symbolizer_inode_doubtful(f->fd) && mapping_is(req, &f->ident);
}

static int open_way(struct symbolizer_file **fp,
		    const struct symbolizer_open_req *req,
		    enum symbolizer_way way, bool *damaged)
{
	struct symbolizer_file *f;
	int err, fd = symbolizer_open_way(req, way);

	*damaged = false;
	if (fd < 0)
		return fd;
	err = file_from_fd(&f, fd, damaged);
	if (err)
		return err;
	if (!file_is(req, f)) {
		symbolizer_file_free(f);
		return -ESTALE;
	}
	*fp = f;
	return 0;
}

int symbolizer_file_open(struct symbolizer_file **fp,
			 const struct symbolizer_open_req *req, bool *damaged)
{
	static const enum symbolizer_way orders[][SYMBOLIZER_N_WAYS] = {
		{ SYMBOLIZER_BY_PATH, SYMBOLIZER_BY_MAPPING },
		{ SYMBOLIZER_BY_MAPPING, SYMBOLIZER_BY_PATH,
		  SYMBOLIZER_BY_PLAIN_PATH },
	};
	bool deleted = symbolizer_path_deleted(req->path);
	/* Without its mark the path is a guess that only an id can prove. */
	int ways = deleted && req->build_id_len ? 3 : 2;
	int err, first = 0;
	bool stale = false, dmg;

	for (int i = 0; i < ways; i++) {
		err = open_way(fp, req, orders[deleted][i], &dmg);
		if (err == 0)
			return 0;
		if (i == 0 || first == -ENOENT) {
			first = err;
			*damaged = dmg;
		}
		stale |= err == -ESTALE;
	}
	return stale ? -ESTALE : first;
}

int symbolizer_file_kernel(struct symbolizer_file **fp, const char *kallsyms)
{
	struct symbolizer_file *f = file_new();
	struct symbolizer_src src;
	uint8_t notes[4096];
	ssize_t n = 0;
	int fd;

	if (!f)
		return -ENOMEM;
	f->kallsyms = kallsyms;
	fd = open(KERNEL_NOTES, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, notes, sizeof(notes));
		close(fd);
	}
	symbolizer_src_mem(&src, notes, n > 0 ? (size_t)n : 0);
	f->ident.build_id_len =
		(uint8_t)symbolizer_elf_note_id(&src, 0, src.size, 4,
						f->ident.build_id,
						sizeof(f->ident.build_id));
	*fp = f;
	return 0;
}

/* How long the image is that the kernel mapped; it is whole and ours. */
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
	struct symbolizer_file *f = file_new();
	struct symbolizer_src src;
	bool damaged;
	int err = 0;

	if (!f)
		return -ENOMEM;
	f->image = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!f->image) {
		f->index_err = -ENOENT;
	} else {
		f->ident.size = vdso_size(f->image);
		symbolizer_src_mem(&src, f->image, f->ident.size);
		err = file_load(f, &src, &damaged);
	}
	if (err) {
		symbolizer_file_free(f);
		return err;
	}
	*fp = f;
	return 0;
}
