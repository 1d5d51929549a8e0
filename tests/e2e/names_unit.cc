// SPDX-License-Identifier: Apache-2.0
// names_unit: a C++ unit with much debug information, in the namespace UNIT: containers
// and algorithms of the standard library for PARTS, a sum of part<N>().add(x).
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace UNIT
{
struct key {
	int a;
	std::string b;
	bool operator<(const key &o) const { return a < o.a || b < o.b; }
};

template <int N> struct part {
	std::map<key, std::vector<int>> tree;
	std::unordered_map<int, key> table;
	std::deque<std::shared_ptr<key>> queue;
	std::vector<std::function<int(int)>> calls;

	static inline int twice(int x) { return x * N + 1; }

	int add(int x)
	{
		key k{ twice(x), std::to_string(x) };
		std::vector<int> &v = tree[k];
		std::ostringstream s;

		for (int i = 0; i < x; i++)
			v.push_back(twice(i) % 17);
		std::sort(v.begin(), v.end(), [](int a, int b) {
			return a * N % 7 < b * N % 7;
		});
		table[x] = k;
		queue.push_back(std::make_shared<key>(k));
		calls.push_back([this](int y) {
			return twice(y) + (int)queue.size();
		});
		for (auto &c : calls)
			s << c(x) << k.b;
		return (int)s.str().size() +
		       (int)std::count_if(v.begin(), v.end(),
					  [](int a) { return a > N; });
	}
};

int run(int x) { return PARTS; }
}
