/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: one line a message on standard error. Only profiler/ logs: a part returns its
 * errors, and each is logged once, where it is handled.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/* X(NAME, word, priority of sd-daemon(3)) */
#define LOG_LEVELS(X)      \
	X(ERROR, error, 3) \
	X(WARN, warn, 4)   \
	X(INFO, info, 6)   \
	X(DEBUG, debug, 7)

enum log_level {
#define X(name, word, syslog) LOG_##name,
	LOG_LEVELS(X)
#undef X
};

void log_set_level(enum log_level level);

void log_printf(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...) log_printf(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_printf(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_printf(LOG_INFO, __VA_ARGS__)

#endif /* BASE_LOG_H */
