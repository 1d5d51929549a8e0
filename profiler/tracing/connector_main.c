// SPDX-License-Identifier: Apache-2.0
/* connector_main: the child processes: see profiler/tracing/connector.h. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/tracing/connector.h"

#define MAIN_SOCKET 0
#define MAIN_TRY_S 1 /* then an attempt is killed */
/*
 * Attempts that have not ended. One that waits for a file system goes on when it was
 * killed, until that has answered; so a user has as many as are free.
 */
#define MAIN_CHILDREN 16
#define MAIN_STATUS_MAX 16384
#define MAIN_GROUPS_MAX 1024

/* Of a process. */
struct connector_user {
	struct procfs_ids ids;
	size_t n;
	gid_t groups[MAIN_GROUPS_MAX];
};

/* "Groups:\t1 2 3 \n" of /proc/PID/status. */
static int main_groups(const char *status, struct connector_user *u)
{
	const char *at = strstr(status, "\nGroups:\t");
	char *end;

	if (!at)
		return -EINVAL;
	at += strlen("\nGroups:\t");
	for (u->n = 0; *at >= '0' && *at <= '9'; at = end + (*end == ' ')) {
		if (u->n == MAIN_GROUPS_MAX)
			return -E2BIG;
		u->groups[u->n++] = (gid_t)strtoul(at, &end, 10);
	}
	at += *at == ' '; /* also behind none */
	return *at == '\n' ? 0 : -E2BIG;
}

/*
 * Only of a process that is one user's in every respect: one that executed a program with
 * the set-user-id bit since it named the socket has more than one.
 */
static int main_user(int dir, uint32_t uid, struct connector_user *u)
{
	char status[MAIN_STATUS_MAX];

	if (procfs_read(dir, "status", status, sizeof(status)) <= 0 ||
	    !procfs_ids_parse(status, &u->ids))
		return -ESRCH;
	if (u->ids.uid != uid || u->ids.euid != uid || u->ids.suid != uid ||
	    u->ids.egid != u->ids.gid || u->ids.sgid != u->ids.gid)
		return -ESRCH;
	return main_groups(status, u);
}

/* A descriptor of its root; or -errno. 'u' is set. */
static int main_root(const struct connector_question *q,
		     struct connector_user *u)
{
	int dir = procfs_open(q->tgid), root = -ESRCH, err;
	struct procfs_stat st;

	if (dir < 0)
		return dir;
	if (procfs_stat_at(dir, &st) &&
	    st.start == procfs_tick_of(q->start_boottime)) {
		root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
		root = root < 0 ? -errno : root;
	}
	err = root < 0 ? root : main_user(dir, q->uid, u);
	close(dir);
	if (err && root >= 0)
		close(root);
	return err ? err : root;
}

bool connector_permitted(void)
{
	cap_flag_value_t uid = CAP_CLEAR, gid = CAP_CLEAR;
	cap_t caps = cap_get_proc();

	if (!caps)
		return false;
	cap_get_flag(caps, CAP_SETUID, CAP_EFFECTIVE, &uid);
	cap_get_flag(caps, CAP_SETGID, CAP_EFFECTIVE, &gid);
	cap_free(caps);
	return uid == CAP_SET && gid == CAP_SET;
}

/*
 * From root to another user the kernel takes the capabilities; to root, or from another
 * user, it does not.
 */
static int main_drop(void)
{
	cap_t none = cap_init();
	int err = !none || cap_set_proc(none) ? -EPERM : 0;

	cap_free(none);
	/* The user must not see into it, and it ends with the connector. */
	if (!err && (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
		     prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)))
		err = -errno;
	return err;
}

static int main_become(const struct connector_user *u)
{
	uid_t uid = u->ids.uid;
	gid_t gid = u->ids.gid;

	if (connector_permitted() &&
	    (setgroups(u->n, u->groups) || setresgid(gid, gid, gid) ||
	     setresuid(uid, uid, uid)))
		return -errno;
	return main_drop();
}

/* A descriptor without access (O_PATH) of the socket; or -errno. */
static int main_socket(int root, const char *path, uint32_t uid)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	struct stat st;
	int fd, err = 0;

	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISSOCK(st.st_mode))
		err = -ENOTSOCK;
	else if (st.st_uid != uid)
		err = -EPERM;
	if (err)
		close(fd);
	return err ? err : fd;
}

/* By its descriptor: what has the path's name may be another file by now. */
static int main_connect(int socket_fd)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d",
		 socket_fd);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

static int main_try(const struct connector_question *q)
{
	static struct connector_user u;
	int root = main_root(q, &u), fd, err;

	if (root < 0)
		return root;
	err = main_become(&u);
	fd = err ? err : main_socket(root, q->path, q->uid);
	return fd < 0 ? fd : main_connect(fd);
}

/* --- messages ----------------------------------------------------------------- */

static int main_answer(uint64_t number, int fd)
{
	struct connector_answer a = { .number = number, .err = MIN(fd, 0) };
	struct iovec iov = { &a, sizeof(a) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	return sendmsg(MAIN_SOCKET, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool main_valid(const struct connector_question *q, ssize_t len)
{
	size_t head = offsetof(struct connector_question, path);

	return len > (ssize_t)head && q->path[(size_t)len - head - 1] == '\0';
}

/* --- attempts ------------------------------------------------------------------- */

struct main_child {
	pid_t pid; /* 0: free */
	uint32_t uid;
};

static void main_reap(struct main_child children[MAIN_CHILDREN])
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (size_t i = 0; i < MAIN_CHILDREN; i++)
			if (children[i].pid == pid)
				children[i].pid = 0;
}

/* NULL: this user has as many as are free. */
static struct main_child *main_room(struct main_child children[MAIN_CHILDREN],
				    uint32_t uid)
{
	struct main_child *room = NULL;
	unsigned int used = 0, own = 0;

	for (size_t i = 0; i < MAIN_CHILDREN; i++) {
		used += children[i].pid != 0;
		own += children[i].pid && children[i].uid == uid;
		if (!children[i].pid)
			room = &children[i];
	}
	return own < MAIN_CHILDREN - used ? room : NULL;
}

/* In a process of its own; or -errno. */
static int main_fork(struct main_child children[MAIN_CHILDREN],
		     const struct connector_question *q)
{
	struct main_child *c = main_room(children, q->uid);
	pid_t pid = c ? fork() : 0;

	if (!c)
		return -EBUSY;
	if (pid < 0)
		return -errno;
	if (pid) {
		*c = (struct main_child){ pid, q->uid };
		return 0;
	}
	alarm(MAIN_TRY_S);
	_exit(main_answer(q->number, main_try(q)) ? 1 : 0);
}

static int main_serve(void)
{
	static struct main_child children[MAIN_CHILDREN];
	static struct connector_question q;
	ssize_t len;
	int err;

	while ((len = recv(MAIN_SOCKET, &q, sizeof(q), 0)) > 0) {
		if (!main_valid(&q, len))
			return 1;
		main_reap(children);
		err = main_fork(children, &q);
		if (err && main_answer(q.number, err))
			return 1;
	}
	return 0;
}

/* It ends with profd, leaves no core and cannot be traced. */
static int main_confine(void)
{
	const struct rlimit none = { 0, 0 };

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	if (close_range(1, ~0U, 0) || chdir("/") ||
	    prctl(PR_SET_NAME, "profd-connect", 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ||
	    setrlimit(RLIMIT_CORE, &none))
		return -errno;
	return 0;
}

bool connector_wanted(int argc, char **argv)
{
	return argc == 2 && !strcmp(argv[1], CONNECTOR_COMMAND);
}

int connector_main(void)
{
	/* Without profd's exit handlers. */
	_exit(main_confine() ? 1 : main_serve());
}
