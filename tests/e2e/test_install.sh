#!/bin/bash
# make install puts files where a system looks for them, and make uninstall removes
# exactly these. An edited configuration survives both.
. "$(dirname "$0")/lib.sh"

quiet_make() {
	(cd "$ROOT" && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make "$@")
}
# A prefix other than that of the build.
put() { quiet_make "$1" "DESTDIR=$T/inst" PREFIX=/opt/profd SYSCONFDIR=/etc; }
files() { (cd "$T/inst" && find . ! -type d | sort); }

mkdir -p "$T/inst/opt/profd/bin"
echo other >"$T/inst/opt/profd/bin/other"
check "make install" put install
p=$T/inst/opt/profd
for f in bin/profd sbin/quark-mon lib/libquark.so.0 lib/libquark.so \
	lib/libquark.a include/quark.h lib/pkgconfig/quark.pc \
	lib/systemd/system/profd.service lib/sysusers.d/profd.conf \
	lib/tmpfiles.d/profd.conf share/man/man8/profd.8 \
	share/man/man5/profd.conf.5 share/man/man7/profd-metrics.7 \
	share/bash-completion/completions/profd \
	share/zsh/site-functions/_profd; do
	check "installed: $f" test -s "$p/$f"
done
check "installed: the configuration" test -s "$T/inst/etc/profd/profd.conf"
is "the unit starts the installed profd" \
	"$(sed -n 's/^ExecStart=//p' "$p/lib/systemd/system/profd.service")" \
	"/opt/profd/bin/profd run"
is "quark.pc has the prefix" "$(sed -n 's/^prefix=//p' "$p/lib/pkgconfig/quark.pc")" \
	/opt/profd
user=$(sed -n 's/^User=//p' "$p/lib/systemd/system/profd.service")
like "the unit's user is made" "$(cat "$p/lib/sysusers.d/profd.conf")" "u $user "
like "its directories belong to it" "$(cat "$p/lib/tmpfiles.d/profd.conf")" \
	"/run/profd 0755 $user"

# --- completion, as a shell calls it ---
complete_words() { # complete_words WORD...: what could stand for the last
	bash --norc -c '. "$1"; shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_profd
		printf "%s\n" "${COMPREPLY[@]}"' - \
		"$p/share/bash-completion/completions/profd" "$@" | tr '\n' ' '
}
is "completion: commands" "$(complete_words profd re)" "record report "
is "completion: options" "$(complete_words profd fetch --d)" \
	"--duration --diff --drop-marks "
is "completion: none of another command" "$(complete_words profd status --fr)" " "
is "completion: values" "$(complete_words profd ps --sort s)" "samples start "
is "completion: by letter" "$(complete_words profd run --log-level w)" "warn "
is "completion: help" "$(complete_words profd help ev)" "events "
check "the bash script is one" bash -n "$p/share/bash-completion/completions/profd"
like "the zsh script says whose it is" \
	"$(head -n 1 "$p/share/zsh/site-functions/_profd")" '^#compdef profd$'
! command -v zsh >/dev/null ||
	check "the zsh script is one" zsh -n "$p/share/zsh/site-functions/_profd"

# --- uninstall ---
cp -r "$T/inst" "$T/inst2"
check "make uninstall" put uninstall
is "nothing is left but what was there" "$(files)" ./opt/profd/bin/other
check "no directory of the configuration" test ! -e "$T/inst/etc/profd"
rm -rf "$T/inst"
mv "$T/inst2" "$T/inst"
echo 'freq = 49' >>"$T/inst/etc/profd/profd.conf"
check "make install again" put install
is "an edited configuration is kept" \
	"$(tail -n 1 "$T/inst/etc/profd/profd.conf")" 'freq = 49'
check "make uninstall again" put uninstall
is "also by uninstall" "$(files | grep -v other)" ./etc/profd/profd.conf
plan
