// SPDX-License-Identifier: Apache-2.0
/*
 * top_screen: the table on a terminal, with ncurses, and its keys; see
 * profiler/view/top.h. Texts are escaped before they come here; wide characters take
 * two columns, and those that the locale cannot print become '?'.
 */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "profiler/view/top.h"

/* The last ones: their macros have names as lines and columns. */
#include <curses.h>
#include <term.h>
#undef lines
#undef columns

#define TOP_ESCAPE_MS 25 /* after which Escape is a key */
#define TOP_WIDEST 1024 /* columns that are drawn */

static SCREEN *top_terminal;
static volatile sig_atomic_t top_signal;

static void top_on_signal(int signum)
{
	top_signal = signum;
}

int top_screen_signal(void)
{
	return top_signal;
}

/* --- the terminal ------------------------------------------------------------------ */

/* Without moving the cursor there is no screen: TERM=dumb. */
static bool top_terminal_fits(void)
{
	int err;
	char *move;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    !getenv("TERM") || setupterm(NULL, STDOUT_FILENO, &err) != OK)
		return false;
	move = tigetstr("cup");
	return move && move != (char *)-1;
}

bool top_screen_open(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	/* Interrupts poll(2); ncurses leaves handlers that there are. */
	struct sigaction sa = { .sa_handler = top_on_signal };

	setlocale(LC_CTYPE, "");
	if (!top_terminal_fits())
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!cmd_is_ignored(signals[i]))
			sigaction(signals[i], &sa, NULL);
	top_terminal = newterm(NULL, stdout, stdin);
	if (!top_terminal)
		return false;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(TOP_ESCAPE_MS);
	curs_set(0);
	return true;
}

void top_screen_close(void)
{
	if (!top_terminal)
		return;
	endwin();
	delscreen(top_terminal);
	top_terminal = NULL;
}

/* --- drawing ---------------------------------------------------------------------- */

/* What of 's' fits into 'width' columns, and how many these are. */
static size_t top_wide(const char *s, size_t width, wchar_t *out, size_t *used)
{
	size_t n = 0, len = strlen(s), step;
	uint32_t cp;
	int w;

	*used = 0;
	for (; len; s += step, len -= step) {
		step = text_decode((const unsigned char *)s, len, &cp);
		w = step ? wcwidth((wchar_t)cp) : -1;
		step = step ? step : 1;
		if (w < 0)
			cp = '?';
		w = w < 0 ? 1 : w;
		/* Marks without width: any number would be in one cell. */
		if (!w)
			continue;
		if (*used + (size_t)w > width)
			break;
		*used += (size_t)w;
		out[n++] = (wchar_t)cp;
	}
	return n;
}

/* Draws a text at column 'x', aligned in 'width' columns; the rest of them is blank. */
static void top_put(int y, size_t x, const char *s, size_t width, bool right)
{
	wchar_t text[TOP_WIDEST];
	size_t most = (size_t)COLS, n, used;

	if (x >= most)
		return;
	width = MIN(MIN(width, most - x), (size_t)TOP_WIDEST);
	n = top_wide(s, width, text, &used);
	if (right)
		x += width - used;
	mvaddnwstr(y, (int)x, text, (int)n);
}

static size_t top_put_cells(const struct top_table *table, int y,
			    const struct top_row *row)
{
	size_t x = 0;

	for (size_t i = 0; i < table->ncolumns; i++) {
		const struct top_column *c = &table->columns[i];

		if ((size_t)COLS < c->from)
			continue;
		top_put(y, x, row ? row->cells[i] : c->title, c->width,
			!c->left);
		x += c->width + 1;
	}
	return x + 1;
}

static void top_put_row(const struct top_table *table, int y,
			const struct top_row *row, attr_t attr)
{
	size_t x;

	attron(attr);
	if (attr)
		mvhline(y, 0, ' ', COLS);
	x = top_put_cells(table, y, row);
	top_put(y, x, row ? row->name : table->title, TOP_WIDEST, false);
	attroff(attr);
}

static const char *const top_help[] = {
	"q            leave",
	"f l          rows: functions, lines",
	"p n e c u    rows: processes, names (comm), executables,",
	"             containers, systemd units",
	"Tab          the next of these",
	"s            sort by flat or by cum",
	"Enter        only the samples of this row (process, name, ...)",
	"Backspace    back to all",
	"Up Down Page Home End  choose a row (also j k)",
	"Space        stop and continue refreshing",
	"",
	"flat: samples of the row itself; cum: with what it called, of a",
	"process: with all its descendants. cover: the share of the kernel's",
	"CPU time that samples account for. Any key leaves this page.",
};

static void top_draw_help(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(top_help) && (int)i < LINES; i++)
		top_put((int)i, 0, top_help[i], TOP_WIDEST, false);
}

/* Rows of the terminal for each part; the table has the others. */
struct top_parts {
	int head, what, title, bar, rows;
};

static struct top_parts top_parts(void)
{
	struct top_parts p = {
		.head = LINES >= 3,
		.what = LINES >= 5,
		.title = LINES >= 2,
		.bar = LINES >= 8,
	};

	p.rows = LINES - p.head - p.what - p.title - p.bar;
	return p;
}

/* The selected row stays on the screen. */
static void top_scroll(struct top *t, size_t rows)
{
	t->selected = MIN(t->selected, t->table.n ? t->table.n - 1 : 0);
	if (t->selected < t->first)
		t->first = t->selected;
	if (rows && t->selected >= t->first + rows)
		t->first = t->selected - rows + 1;
}

static void top_draw_table(struct top *t)
{
	const struct top_parts p = top_parts();
	const struct top_table *table = &t->table;
	const char *what = t->note ? t->note : strbuf_str(&table->what);
	int y = 0;

	top_scroll(t, (size_t)MAX(p.rows, 0));
	if (p.head) {
		attron(A_BOLD);
		top_put(y++, 0,
			table->q ? strbuf_str(&table->head)
				 : "profd: the first profile takes a second",
			TOP_WIDEST, false);
		attroff(A_BOLD);
	}
	if (p.what)
		top_put(y++, 0, what ? what : "", TOP_WIDEST, false);
	if (p.title && table->q)
		top_put_row(table, y++, NULL, A_REVERSE);
	for (size_t i = t->first; i < table->n && y < LINES - p.bar; i++)
		top_put_row(table, y++, &table->items[i],
			    i == t->selected ? A_BOLD | A_UNDERLINE : 0);
	if (p.bar)
		top_put(LINES - 1, 0,
			t->paused ? "stopped; Space continues"
				  : "q leave  ? help  f l p n e c u rows  "
				    "s sort  Enter only this  Backspace all",
			TOP_WIDEST, false);
}

void top_screen_draw(struct top *t)
{
	erase();
	if (t->help)
		top_draw_help();
	else
		top_draw_table(t);
	refresh();
}

/* --- keys ------------------------------------------------------------------------- */

static const struct {
	int key;
	const char *by;
} top_rows_keys[] = {
#define X(key, by, title) { key, by },
	TOP_ROWS(X)
#undef X
};

/* Another table of the same profile. */
static void top_remake(struct top *t)
{
	t->selected = t->first = 0;
	if (top_make(t))
		t->note = "out of memory";
}

static void top_by(struct top *t, const char *by)
{
	t->by = by;
	if (!strcmp(by, "process") && t->live && !t->processes.n)
		top_processes_get(t);
	top_remake(t);
}

static void top_key_next(struct top *t)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(top_rows_keys); i++)
		if (!strcmp(top_rows_keys[i].by, t->by))
			break;
	i = i >= ARRAY_SIZE(top_rows_keys) ? 0 : i + 1;
	top_by(t, top_rows_keys[i % ARRAY_SIZE(top_rows_keys)].by);
}

static void top_key_sort(struct top *t)
{
	t->cum = !t->cum;
	top_remake(t);
}

static void top_key_enter(struct top *t)
{
	const struct top_row *row;
	int err;

	if (t->selected >= t->table.n)
		return;
	row = &t->table.items[t->selected];
	if (!row->value) {
		t->note = "Choose other rows first: p n e c u";
		return;
	}
	err = top_focus(t, row->value);
	if (err)
		t->note = err == -ENOMEM ? "out of memory" : "not of this row";
	else
		top_remake(t);
}

static void top_key_back(struct top *t)
{
	if (top_unfocus(t))
		top_remake(t);
}

static void top_key_pause(struct top *t)
{
	t->paused = t->live && !t->paused;
}

static void top_key_help(struct top *t)
{
	t->help = true;
}

static void top_key_leave(struct top *t)
{
	t->leave = true;
}

static void top_move(struct top *t, ptrdiff_t by)
{
	ptrdiff_t at = (ptrdiff_t)t->selected + by;

	/* Down: top_scroll() knows how many there are. */
	t->selected = at < 0 ? 0 : (size_t)at;
}

static void top_key_up(struct top *t)
{
	top_move(t, -1);
}

static void top_key_down(struct top *t)
{
	top_move(t, 1);
}

static void top_key_page_up(struct top *t)
{
	top_move(t, -(ptrdiff_t)MAX(top_parts().rows, 1));
}

static void top_key_page_down(struct top *t)
{
	top_move(t, MAX(top_parts().rows, 1));
}

static void top_key_home(struct top *t)
{
	t->selected = 0;
}

static void top_key_end(struct top *t)
{
	t->selected = t->table.n;
}

static const struct {
	int key;
	void (*press)(struct top *t);
} top_keys[] = {
	{ 'q', top_key_leave },
	{ 'Q', top_key_leave },
	{ '?', top_key_help },
	{ 'h', top_key_help },
	{ KEY_F(1), top_key_help },
	{ '\t', top_key_next },
	{ 's', top_key_sort },
	{ '\n', top_key_enter },
	{ '\r', top_key_enter },
	{ KEY_ENTER, top_key_enter },
	{ KEY_BACKSPACE, top_key_back },
	{ 127, top_key_back },
	{ '\b', top_key_back },
	{ '\033', top_key_back },
	{ ' ', top_key_pause },
	{ KEY_UP, top_key_up },
	{ 'k', top_key_up },
	{ KEY_DOWN, top_key_down },
	{ 'j', top_key_down },
	{ KEY_PPAGE, top_key_page_up },
	{ KEY_NPAGE, top_key_page_down },
	{ KEY_HOME, top_key_home },
	{ KEY_END, top_key_end },
};

static void top_press(struct top *t, int key)
{
	size_t i;

	t->note = NULL;
	if (t->help) {
		t->help = key == KEY_RESIZE;
		return;
	}
	for (i = 0; i < ARRAY_SIZE(top_rows_keys); i++)
		if (top_rows_keys[i].key == key)
			top_by(t, top_rows_keys[i].by);
	for (i = 0; i < ARRAY_SIZE(top_keys); i++)
		if (top_keys[i].key == key)
			top_keys[i].press(t);
}

static bool top_has_input(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

void top_screen_keys(struct top *t)
{
	bool pressed = false, input = top_has_input();
	int key;

	while (!t->leave && !top_signal && (key = getch()) != ERR) {
		pressed = true;
		top_press(t, key);
	}
	/* The terminal is gone. */
	if (input && !pressed && top_has_input())
		t->leave = true;
	if (top_signal)
		t->leave = true;
	if (pressed && !t->leave)
		top_screen_draw(t);
}

void top_screen_wait(struct top *t)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	poll(&in, 1, 1000);
	top_screen_keys(t);
}
