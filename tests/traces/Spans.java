// SPDX-License-Identifier: Apache-2.0
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;

/**
 * Transactions on several threads, for test_java.sh, by the API of OpenTelemetry, which
 * Elastic's agent implements. Each thread logs when its span changes, as compare.py reads
 * it.
 *
 *	Spans SECONDS LOG GO OFFSET
 *
 * OFFSET is from CLOCK_MONOTONIC to CLOCK_BOOTTIME, in nanoseconds.
 * Until a file GO appears there are transactions, too, which are named "early"; those
 * after it, for SECONDS of CPU time of each thread, are named "request". LOG.tmp is written, then renamed. Then it
 * waits to be killed, so that the agent sends what it has.
 */
public class Spans {
	static final int THREADS = 3;
	static final Tracer tracer = GlobalOpenTelemetry.getTracer("spans");
	static final ThreadMXBean cpu = ManagementFactory.getThreadMXBean();
	static final List<String> lines = new ArrayList<>();
	static long offset;
	static volatile int sink;

	static class Log {
		final String tid;
		final List<String> own = new ArrayList<>();

		Log() throws Exception {
			tid = Files.readSymbolicLink(Paths.get("/proc/thread-self"))
				.getFileName().toString();
		}

		/** What this thread has now; it had not before. */
		void changed(long before, Span span) {
			SpanContext c = span == null ? null : span.getSpanContext();
			own.add(tid + " " + before + " " + now() + " " + (c == null ? "- -"
				: c.getTraceId() + " " + c.getSpanId()));
		}

		void end() {
			synchronized (lines) {
				lines.addAll(own);
			}
		}
	}

	static long now() {
		return System.nanoTime() + offset;
	}

	/** CPU time of this thread. */
	static void burn(long ms) {
		long end = cpu.getCurrentThreadCpuTime() + ms * 1000000;
		int v = sink;

		while (cpu.getCurrentThreadCpuTime() < end)
			for (int i = 0; i < 100000; i++)
				v = v * 69069 + 1;
		sink = v;
	}

	static void request(Log log, String name) {
		long before = now();
		Span outer = tracer.spanBuilder(name).startSpan();

		try (Scope s = outer.makeCurrent()) {
			log.changed(before, outer);
			burn(60);
			before = now();
			Span inner = tracer.spanBuilder("inner").startSpan();
			try (Scope t = inner.makeCurrent()) {
				log.changed(before, inner);
				burn(40);
				before = now();
			}
			log.changed(before, outer);
			inner.end();
			burn(30);
			before = now();
		}
		log.changed(before, null);
		outer.end();
	}

	static void requests(Path go, long ns) {
		try {
			Log log = new Log();
			while (!Files.exists(go))
				request(log, "early");
			long end = cpu.getCurrentThreadCpuTime() + ns;
			while (cpu.getCurrentThreadCpuTime() < end) {
				request(log, "request");
				burn(15);
			}
			log.end();
		} catch (Exception e) {
			e.printStackTrace();
			System.exit(1);
		}
	}

	public static void main(String[] args) throws Exception {
		long ns = Long.parseLong(args[0]) * 1000000000L;
		Path log = Paths.get(args[1]), tmp = Paths.get(args[1] + ".tmp");
		Thread[] threads = new Thread[THREADS];

		offset = Long.parseLong(args[3]);
		for (int i = 0; i < THREADS; i++) {
			threads[i] = new Thread(() -> requests(Paths.get(args[2]), ns));
			threads[i].start();
		}
		for (Thread t : threads)
			t.join();
		Files.write(tmp, lines);
		Files.move(tmp, log);
		Thread.sleep(60000);
	}
}
