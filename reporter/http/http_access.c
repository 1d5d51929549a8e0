// SPDX-License-Identifier: Apache-2.0
/* http_access: see reporter/http/http_access.h. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/http/http_access.h"

#define ACCESS_FILE_MAX (256 << 10)
#define ACCESS_TOKEN_MIN 16
#define ACCESS_TOKEN_MAX 512

/* New connections a second, and how many more at once. */
#define ACCESS_RATE 5 /* of one address */
#define ACCESS_BURST 20
#define ACCESS_RATE_ALL 40
#define ACCESS_BURST_ALL 200
#define ACCESS_PEERS 256

/* A bucket of connections: full at the begin, one drop each. */
struct access_bucket {
	uint64_t at; /* clock_awake_ns() of the last change; 0: never */
	double level; /* connections used up */
};

struct http_access {
	bool token;
	uint8_t digest[SHA256_DIGEST_SIZE];
	char *cert, *key;
	char **names;
	size_t nnames;
	struct access_bucket all, peers[ACCESS_PEERS]; /* by hash */
};

/* --- files ------------------------------------------------------------------ */

/* The text of a file that only its owner can write, and, if 'secret', read. */
static int access_read(const char *path, bool secret, char **out,
		       const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	*out = NULL;
	if (fstat(fd, &st)) {
		err = -errno;
	} else if (!S_ISREG(st.st_mode) || st.st_size > ACCESS_FILE_MAX) {
		*why = "not a regular file of at most 256 KiB";
		err = -EINVAL;
	} else if ((st.st_uid && st.st_uid != geteuid()) ||
		   (st.st_mode & (secret ? 027 : 022))) {
		*why = secret ? "must belong to root or profd's user, and not "
				"be readable by others (chmod 0600)"
			      : "must belong to root or profd's user, and not "
				"be writable by others";
		err = -EPERM;
	} else {
		*out = malloc((size_t)st.st_size + 1);
		err = *out ? 0 : -ENOMEM;
	}
	if (!err) {
		n = read(fd, *out, (size_t)st.st_size);
		err = n < 0 ? -errno : 0;
		(*out)[MAX(n, 0)] = '\0';
	}
	close(fd);
	return err;
}

static void access_digest(const char *token, size_t len,
			  uint8_t out[SHA256_DIGEST_SIZE])
{
	struct sha256_ctx c;

	sha256_init(&c);
	sha256_update(&c, len, (const uint8_t *)token);
	sha256_digest(&c, SHA256_DIGEST_SIZE, out);
}

static int access_read_token(struct http_access *a, const char *path,
			     const char **why)
{
	char *text = NULL;
	size_t len = 0;
	int err = access_read(path, true, &text, why);

	if (!err) {
		len = strcspn(text, "\r\n");
		if (text[len + strspn(text + len, "\r\n")] ||
		    strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
				 "tuvwxyz0123456789-._~+/=") != len ||
		    len < ACCESS_TOKEN_MIN || len > ACCESS_TOKEN_MAX) {
			*why = "must have one line, of 16 to 512 letters, "
			       "digits and -._~+/= (openssl rand -hex 32)";
			err = -EINVAL;
		}
	}
	if (!err) {
		access_digest(text, len, a->digest);
		a->token = true;
	}
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
	return err;
}

static int access_copy_names(struct http_access *a,
			     const struct reporter_access *opts)
{
	a->names = calloc(opts->nhost_names + 1, sizeof(*a->names));
	if (!a->names)
		return -ENOMEM;
	for (; a->nnames < opts->nhost_names; a->nnames++) {
		a->names[a->nnames] = strdup(opts->host_names[a->nnames]);
		if (!a->names[a->nnames])
			return -ENOMEM;
	}
	return 0;
}

int http_access_new(struct http_access **ap, const struct reporter_access *opts,
		    const char **where, const char **why)
{
	struct http_access *a = calloc(1, sizeof(*a));
	int err = a ? access_copy_names(a, opts) : -ENOMEM;

	*where = "access";
	*why = NULL;
	if (!err && opts->token_file) {
		*where = opts->token_file;
		err = access_read_token(a, opts->token_file, why);
	}
	if (!err && opts->cert_file) {
		*where = opts->cert_file;
		err = access_read(opts->cert_file, false, &a->cert, why);
	}
	if (!err && opts->key_file) {
		*where = opts->key_file;
		err = access_read(opts->key_file, true, &a->key, why);
	}
	if (!err && !a->cert != !a->key) {
		*where = a->cert ? opts->cert_file : opts->key_file;
		*why = "TLS needs both a certificate and its key";
		err = -EINVAL;
	}
	if (err) {
		http_access_free(a);
		return err;
	}
	*ap = a;
	return 0;
}

void http_access_free(struct http_access *a)
{
	if (!a)
		return;
	if (a->key)
		explicit_bzero(a->key, strlen(a->key));
	while (a->nnames)
		free(a->names[--a->nnames]);
	free(a->names);
	free(a->cert);
	free(a->key);
	free(a);
}

/* --- questions -------------------------------------------------------------- */

const char *http_access_cert(const struct http_access *a)
{
	return a->cert;
}

const char *http_access_key(const struct http_access *a)
{
	return a->key;
}

bool http_access_remote(const struct http_access *a)
{
	return a->cert && a->token;
}

/* RFC 6750 section 2.1. Digests are compared, so the time tells no prefix. */
enum http_token http_access_token(const struct http_access *a,
				  const char *authorization)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	size_t len;

	if (!authorization)
		return HTTP_TOKEN_NONE;
	if (!a->token || strncasecmp(authorization, "Bearer ", 7))
		return HTTP_TOKEN_WRONG;
	authorization += 7 + strspn(authorization + 7, " ");
	len = strlen(authorization);
	if (len > ACCESS_TOKEN_MAX)
		return HTTP_TOKEN_WRONG;
	access_digest(authorization, len, digest);
	return memeql_sec(digest, a->digest, sizeof(digest)) ? HTTP_TOKEN_RIGHT
							     : HTTP_TOKEN_WRONG;
}

bool http_access_host(const struct http_access *a, const char *host)
{
	size_t len = host ? strcspn(host, ":") : 0;

	for (size_t i = 0; i < a->nnames; i++)
		if (strlen(a->names[i]) == len &&
		    !strncasecmp(a->names[i], host, len))
			return true;
	return false;
}

static bool access_take(struct access_bucket *b, uint64_t now, double rate,
			double burst)
{
	double seconds = (double)(now - b->at) / (double)CLOCK_NSEC_PER_SEC;
	double level = b->at ? b->level - seconds * rate : 0;

	level = MAX(level, 0.0);
	b->at = now;
	b->level = level;
	if (level + 1 > burst)
		return false;
	b->level = level + 1;
	return true;
}

/* Of the bucket of an address; IPv6 hosts have at least a /64. */
static size_t access_peer(const struct sockaddr *from)
{
	uint64_t v = 0;

	if (from->sa_family == AF_INET)
		v = ((const struct sockaddr_in *)from)->sin_addr.s_addr;
	else if (from->sa_family == AF_INET6)
		memcpy(&v, &((const struct sockaddr_in6 *)from)->sin6_addr,
		       sizeof(v));
	return hash_u64(v) % ACCESS_PEERS;
}

bool http_access_connect(struct http_access *a, const struct sockaddr *from,
			 uint64_t now)
{
	return access_take(&a->peers[access_peer(from)], now, ACCESS_RATE,
			   ACCESS_BURST) &&
	       access_take(&a->all, now, ACCESS_RATE_ALL, ACCESS_BURST_ALL);
}
