#!/bin/bash
# Compilers have the deepest stacks of common programs: of clang++ and g++ at work on
# templates, at least 99 % reach their root, where with 64 KiB a twelfth of those of
# clang++ do not. --stack-copy 64K still has the old limit.
. "$(dirname "$0")/lib.sh"

cat >"$T/heavy.cc" <<'END'
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <tuple>
#include <variant>
#include <vector>
template <int N> struct nest {
	using type = std::tuple<typename nest<N - 1>::type,
		std::map<std::string, std::vector<std::integral_constant<int, N>>>>;
};
template <> struct nest<0> { using type = int; };
template <class... A> struct one_of {
	std::variant<A...> v;
	template <class F> auto go(F f) { return std::visit(f, v); }
};
int main()
{
	nest<6>::type n;
	one_of<int, double, std::string, std::vector<int>, std::map<int, int>> o;
	std::string s = "abac12";
	std::smatch m;
	(void)n;
	o.go([](auto &x) { std::cout << sizeof(x); });
	std::sort(s.begin(), s.end(), [](int a, int b) { return a > b; });
	return std::regex_match(s, m, std::regex("(a|b)*c[0-9]+"));
}
END

# compiled NAME COMMAND [OPTIONS...]: how its stacks end, in $T/NAME.ends, of as many
# recordings as it takes to have enough of them: a fast machine compiles in no time.
compiled() {
	local name=$1 command=$2
	shift 2
	all=0
	: >"$T/$name"
	for i in {1..5}; do
		watch "$T/$name$i.pb.gz" -F 197 "$@" -- \
			"$command" -std=c++17 -O1 -c -o "$T/heavy.o" "$T/heavy.cc" ||
			bail "$name: recorded" "$(cat "$T/$name$i.pb.gz.log")"
		samples "$T/$name$i.pb.gz" | awk -F '\t' '$5 ~ /^(clang|cc1plus)/' >>"$T/$name"
		whole "$T/$name" >"$T/$name.ends"
		good=$(ending "$T/$name.ends" whole)
		all=$((good + $(ending "$T/$name.ends" part)))
		((all < 100)) || break
	done
	diag "$name: $(tr '\t\n' ' ,' <"$T/$name.ends")"
	num "$name: enough to tell" "$all" '>=' 100
}
compiled clang clang++
fine "$good" "$all" 99
result $? "clang++: 99 % whole"
compiled gcc g++
fine "$good" "$all" 99
result $? "g++: 99 % whole"
compiled limited clang++ --stack-copy 64K
num "what exceeds a limit that was given is cut" \
	"$(ending "$T/limited.ends" part '[stack cut at 64 KiB]')" '>' 0
plan
