# A C program of 200 functions that each spin a little, whose names take for ever to
# demangle: 2^n steps.
BEGIN {
	d = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for (i = 1; i < n; i++) {
		open = open "S0_I"
		shut = shut (i < 36 ? "S" : "S1") substr(d, i % 36 + 1, 1) "_E"
	}
	print "#define SPIN { for (volatile int i = 0; i < 50000; i++); }"
	for (i = 0; i < 200; i++) {
		printf "void f%d(void) __asm__(\"_Z4f%03dIJiEEvDp1PI%siE%s\");\n",
			i, i, open, shut
		printf "__attribute__((noinline)) void f%d(void) SPIN\n", i
	}
	print "int main(void) {"
	for (i = 0; i < 200; i++)
		printf "f%d();\n", i
	print "return 0; }"
}
