// SPDX-License-Identifier: Apache-2.0
/* error: why quark_queue_open() failed, one line of text. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

static __thread char reason[256];

void quark_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
}

void quark_error_reset(void)
{
	reason[0] = '\0';
}

const char *quark_queue_open_error(void)
{
	return reason;
}

/* libbpf does not report it. */
int quark_btf_error(void)
{
	static const char path[] = "/sys/kernel/btf/vmlinux";
	int fd;

	if (access(path, R_OK))
		return -ENOTSUP;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return -ENOMEM;
}

static bool has_cap(const struct __user_cap_data_struct *data, int cap)
{
	return data[cap / 32].effective >> (cap % 32) & 1;
}

/* CAP_SYS_ADMIN includes both of the newer ones. */
const char *quark_missing_caps(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &head, data) || has_cap(data, CAP_SYS_ADMIN))
		return "";
	if (!has_cap(data, CAP_BPF))
		return has_cap(data, CAP_PERFMON) ? "CAP_BPF"
						  : "CAP_BPF and CAP_PERFMON";
	return has_cap(data, CAP_PERFMON) ? "" : "CAP_PERFMON";
}
