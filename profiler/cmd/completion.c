// SPDX-License-Identifier: Apache-2.0
/* completion: see profiler/cmd/completion.h. */
#include <string.h>

#include "profiler/cmd/completion.h"
#include "profiler/cmd/options_table.h"

static bool completion_has(const struct options_entry *e, size_t cmd)
{
	return e->commands & 1U << cmd;
}

/* Files as values of an option, by its metavar. */
static const struct {
	const char *metavar, *bash, *zsh;
} completion_files[] = {
	{ "DIR", "-d", "_files -/" },
	{ "FILE", "-f", "_files" },
};

/* Index into completion_files; its size: not a file. */
static size_t completion_file(const struct options_entry *e)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(completion_files); i++)
		if (!strcmp(completion_files[i].metavar, e->metavar))
			break;
	return i;
}

/* --- bash ------------------------------------------------------------------ */

static void bash_options(size_t cmd, struct strbuf *out)
{
	const struct options_entry *e;

	strbuf_printf(out, "\t%s) opts='", options_commands[cmd].word);
	for (e = options_table; e < options_table + OPTIONS_ID_MAX; e++) {
		if (!completion_has(e, cmd))
			continue;
		if (e->letter)
			strbuf_printf(out, "-%c ", e->letter);
		strbuf_printf(out, "--%s ", e->name);
	}
	strbuf_puts(out, "-h --help -V --version' ;;\n");
}

static void bash_value(size_t cmd, const struct options_entry *e,
		       struct strbuf *out)
{
	const char *words = options_words(e);
	size_t file = completion_file(e);

	strbuf_printf(out, "\t%s:--%s", options_commands[cmd].word, e->name);
	if (e->letter)
		strbuf_printf(out, " | %s:-%c", options_commands[cmd].word,
			      e->letter);
	strbuf_puts(out, ")\n\t\tCOMPREPLY=(");
	if (words)
		strbuf_printf(out, "$(compgen -W '%s' -- \"$cur\")", words);
	else if (file < ARRAY_SIZE(completion_files))
		strbuf_printf(out, "$(compgen %s -- \"$cur\")",
			      completion_files[file].bash);
	strbuf_puts(out, ")\n\t\treturn ;;\n");
}

static void bash_script(struct strbuf *out)
{
	size_t cmd, i;

	strbuf_puts(out, "# bash completion of profd(8)\n"
			 "_profd() {\n"
			 "\tlocal cur=${COMP_WORDS[COMP_CWORD]} opts\n"
			 "\tlocal prev=${COMP_WORDS[COMP_CWORD - 1]} i\n"
			 "\tlocal commands='");
	for (cmd = 0; cmd < OPTIONS_COMMAND_MAX; cmd++)
		strbuf_printf(out, "%s ", options_commands[cmd].word);
	strbuf_puts(out, "help version'\n"
			 "\tif ((COMP_CWORD == 1)); then\n"
			 "\t\tCOMPREPLY=($(compgen -W \"$commands --help "
			 "--version\" -- \"$cur\"))\n"
			 "\t\treturn\n"
			 "\tfi\n"
			 "\tcase ${COMP_WORDS[1]} in\n"
			 "\thelp) COMPREPLY=($(compgen -W \"$commands\" -- "
			 "\"$cur\"))\n"
			 "\t\treturn ;;\n");
	for (cmd = 0; cmd < OPTIONS_COMMAND_MAX; cmd++)
		bash_options(cmd, out);
	strbuf_puts(out, "\t*) return ;;\n"
			 "\tesac\n"
			 "\tcase ${COMP_WORDS[1]}:$prev in\n");
	for (cmd = 0; cmd < OPTIONS_COMMAND_MAX; cmd++)
		for (i = 0; i < OPTIONS_ID_MAX; i++)
			if (completion_has(&options_table[i], cmd) &&
			    options_table[i].metavar)
				bash_value(cmd, &options_table[i], out);
	strbuf_puts(out,
		    "\tesac\n"
		    "\tif [[ $cur == -* ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W \"$opts\" -- \"$cur\"))\n"
		    "\telif [[ ${COMP_WORDS[1]} == record ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -c -- \"$cur\"))\n"
		    "\telif [[ ${COMP_WORDS[1]} == export ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -d -- \"$cur\"))\n"
		    "\telif [[ ${COMP_WORDS[1]} == @(symbolize-profile|report|"
		    "top|diff) ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
		    "\telif [[ ${COMP_WORDS[1]} == debug ]]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W 'unwind-table unwind "
		    "symbolize files' -- \"$cur\")\n"
		    "\t\t\t$(compgen -f -- \"$cur\"))\n"
		    "\tfi\n"
		    "}\n"
		    "complete -F _profd profd\n");
}

/* --- zsh ------------------------------------------------------------------- */

/* Escapes text in single quotes, brackets and colons. */
static void zsh_text(const char *s, struct strbuf *out)
{
	for (; *s; s++) {
		if (*s == '\'')
			strbuf_puts(out, "'\\''");
		else if (strchr("[]:\\", *s))
			strbuf_printf(out, "\\%c", *s);
		else
			strbuf_add(out, *s == '\n' ? " " : s, 1);
	}
}

static void zsh_value(const struct options_entry *e, struct strbuf *out)
{
	const char *words = options_words(e);
	size_t file = completion_file(e);

	strbuf_printf(out, ":%s:", e->metavar);
	if (words)
		strbuf_printf(out, "(%s)", words);
	else if (file < ARRAY_SIZE(completion_files))
		strbuf_puts(out, completion_files[file].zsh);
}

static void zsh_spec(const struct options_entry *e, bool letter,
		     struct strbuf *out)
{
	strbuf_puts(out, " \\\n\t\t\t'*");
	if (letter)
		strbuf_printf(out, "-%c%s[", e->letter, e->metavar ? "+" : "");
	else
		strbuf_printf(out, "--%s%s[", e->name, e->metavar ? "=" : "");
	zsh_text(e->help, out);
	strbuf_puts(out, "]");
	if (e->metavar)
		zsh_value(e, out);
	strbuf_puts(out, "'");
}

static void zsh_command(size_t cmd, struct strbuf *out)
{
	size_t i;

	strbuf_printf(out, "\t%s)\n\t\t_arguments", options_commands[cmd].word);
	for (i = 0; i < OPTIONS_ID_MAX; i++) {
		if (!completion_has(&options_table[i], cmd))
			continue;
		if (options_table[i].letter)
			zsh_spec(&options_table[i], true, out);
		zsh_spec(&options_table[i], false, out);
	}
	strbuf_puts(out, " \\\n\t\t\t{-h,--help}'[print the options]'"
			 " \\\n\t\t\t{-V,--version}'[print the version]'");
	if (cmd == OPTIONS_BIT_RECORD)
		strbuf_puts(out, " \\\n\t\t\t'*::command:_normal'");
	else if (strstr(options_commands[cmd].args, "PID"))
		strbuf_puts(out, " \\\n\t\t\t'*:process:_pids'");
	else if (*options_commands[cmd].args)
		strbuf_puts(out, " \\\n\t\t\t'*::argument:_files'");
	strbuf_puts(out, " ;;\n");
}

static void zsh_script(struct strbuf *out)
{
	size_t cmd;

	strbuf_puts(out, "#compdef profd\n"
			 "# zsh completion of profd(8)\n"
			 "_profd() {\n"
			 "\tlocal -a commands\n"
			 "\tcommands=(\n");
	for (cmd = 0; cmd < OPTIONS_COMMAND_MAX; cmd++) {
		strbuf_printf(out, "\t\t'%s:", options_commands[cmd].word);
		zsh_text(options_commands[cmd].help, out);
		strbuf_puts(out, "'\n");
	}
	strbuf_puts(out, "\t\t'help:Print the options of a command.'\n"
			 "\t\t'version:Print the version.'\n"
			 "\t)\n"
			 "\tif ((CURRENT == 2)); then\n"
			 "\t\t_describe command commands\n"
			 "\t\treturn\n"
			 "\tfi\n"
			 "\tshift words\n"
			 "\t((CURRENT--))\n"
			 "\tcase $words[1] in\n"
			 "\thelp) _describe command commands ;;\n");
	for (cmd = 0; cmd < OPTIONS_COMMAND_MAX; cmd++)
		zsh_command(cmd, out);
	strbuf_puts(out, "\tesac\n"
			 "}\n"
			 "_profd \"$@\"\n");
}

bool completion_script(const char *shell, struct strbuf *out)
{
	static const struct {
		const char *shell;
		void (*script)(struct strbuf *out);
	} scripts[] = { { "bash", bash_script }, { "zsh", zsh_script } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(scripts); i++) {
		if (strcmp(scripts[i].shell, shell))
			continue;
		scripts[i].script(out);
		return true;
	}
	return false;
}
