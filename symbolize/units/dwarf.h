/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf: limits of the source in dwarf.c, in bytes; tests lower them. */
#ifndef SYMBOLIZE_DWARF_H
#define SYMBOLIZE_DWARF_H

#include <stddef.h>

struct dwarf_limits {
	size_t records; /* of a file that are held */
	size_t small; /* of DWARF: files that are not packed, and are read whole */
	size_t news; /* tables that are handed on to be kept while a request goes on */
};

extern struct dwarf_limits dwarf_limits;

#endif /* SYMBOLIZE_DWARF_H */
