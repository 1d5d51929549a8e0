# A C program of 200 functions that each spin a little. Their names take very long to
# demangle: 2^n steps for C++, 62^9 for Rust.
BEGIN {
	d = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for (i = 1; i < n; i++) {
		open = open "S0_I"
		shut = shut (i < 36 ? "S" : "S1") substr(d, i % 36 + 1, 1) "_E"
	}
	print "#define SPIN { for (volatile int i = 0; i < 50000; i++); }"
	for (i = 0; i < 200; i++) {
		if (i % 2)
			name = sprintf("_RMIC4f%03dFGzzzzzzzzz_EuEu", i)
		else
			name = sprintf("_Z4f%03dIJiEEvDp1PI%siE%s", i, open, shut)
		printf "void f%d(void) __asm__(\"%s\");\n", i, name
		printf "__attribute__((noinline)) void f%d(void) SPIN\n", i
	}
	print "int main(void) {"
	for (i = 0; i < 200; i++)
		printf "f%d();\n", i
	print "return 0; }"
}
