// SPDX-License-Identifier: Apache-2.0
/*
 * replay_NAME: the fuzz target NAME over its committed corpus, without a
 * fuzzer, so that what was once found stays found. One test, spoken as TAP.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of its exact size, so that a sanitizer sees each byte too far. */
static int replay_file(const char *path)
{
	FILE *f = fopen(path, "r");
	uint8_t *data = NULL;
	struct stat st;
	int err = -1;

	if (!f)
		return -1;
	if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode))
		data = malloc((size_t)st.st_size);
	if (data &&
	    fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size) {
		LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
		err = 0;
	}
	free(data);
	fclose(f);
	return err;
}

/* The number of inputs, or -1 after saying what is wrong. */
static int replay_dir(const char *dir)
{
	struct dirent *de;
	char path[1024];
	DIR *d = opendir(dir);
	int n = 0;

	if (!d) {
		printf("# cannot open %s\n", dir);
		return -1;
	}
	while (n >= 0 && (de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		if (replay_file(path) == 0) {
			n++;
		} else {
			printf("# cannot read %s\n", path);
			n = -1;
		}
	}
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	const char *self = strrchr(argv[0], '/');
	const char *name = strstr(self ? self : argv[0], "replay_");
	char dir[512];
	int n;

	setbuf(stdout, NULL); /* a target that aborts has said how far it was */
	puts("1..1");
	if (!name) {
		puts("not ok 1 - called by a name that is not replay_NAME");
		return 1;
	}
	name += strlen("replay_");
	snprintf(dir, sizeof(dir), "tests/fuzz/corpus/%s", name);
	n = replay_dir(dir);
	printf("%s 1 - %s: %d inputs\n", n > 0 ? "ok" : "not ok", name, n);
	return n > 0 ? 0 : 1;
}
