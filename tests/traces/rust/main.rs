// SPDX-License-Identifier: Apache-2.0
//! Spans on threads of two processes, for test_rust.sh. Each thread logs when it changes its
//! ids, as compare.py reads it.
//!
//!     spans WARM SECONDS LOG
//!
//! Seconds are of CPU time, of each process. The first WARM, outside of any span, are for
//! profd to find the process. The other process is forked before, with a context and a log
//! of its own (LOG.child). Two more are forked inside a span, and do not publish anything:
//! one goes on, one executes this program again ("spans SECONDS").
use libdd_library_config::tracer_metadata::{
    store_tracer_metadata, ThreadLocalMetadata, TracerMetadata,
};
use libdd_otel_thread_ctx::linux::OwnedThreadContext;
use std::fmt::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

const THREADS: usize = 2;
const MS: u64 = 1_000_000;

static LOG: Mutex<String> = Mutex::new(String::new());
static NUMBER: AtomicU64 = AtomicU64::new(1);

fn clock(id: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(id, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// So much CPU time of this thread.
fn burn(ms: u64) {
    let end = clock(libc::CLOCK_THREAD_CPUTIME_ID) + ms * MS;
    let mut v = 1u32;
    while clock(libc::CLOCK_THREAD_CPUTIME_ID) < end {
        for _ in 0..2000 {
            v = std::hint::black_box(v.wrapping_mul(69069).wrapping_add(1));
        }
    }
}

fn mix(mut v: u64) -> u64 {
    v = (v ^ v >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27).wrapping_mul(0x94d049bb133111eb);
    v ^ v >> 31
}

/// Unlike any other on this host.
fn number() -> [u8; 8] {
    let n = NUMBER.fetch_add(1, Ordering::Relaxed) << 32 | std::process::id() as u64;
    mix(n.wrapping_mul(0x9e3779b97f4a7c15)).to_be_bytes()
}

#[derive(Clone, Copy)]
struct Ids {
    trace: [u8; 16],
    span: [u8; 8],
    root: [u8; 8],
}

impl Ids {
    fn root() -> Ids {
        let (mut trace, span) = ([0; 16], number());
        trace[..8].copy_from_slice(&number());
        trace[8..].copy_from_slice(&number());
        Ids { trace, span, root: span }
    }

    fn child(&self) -> Ids {
        Ids { span: number(), ..*self }
    }

    fn context(&self) -> OwnedThreadContext {
        OwnedThreadContext::new(self.trace, self.span, 1, self.root, &[(1, "/cart")])
    }

    fn update(&self) {
        OwnedThreadContext::update(self.trace, self.span, 1, self.root, &[(1, "/cart/item")]);
    }
}

fn hex(out: &mut String, bytes: &[u8]) {
    for b in bytes {
        write!(out, "{b:02x}").unwrap();
    }
}

struct Log {
    tid: i32,
    lines: String,
}

impl Log {
    fn new() -> Log {
        Log { tid: unsafe { libc::gettid() }, lines: String::new() }
    }

    /// What this thread has after the change.
    fn change(&mut self, ids: Option<&Ids>, change: impl FnOnce()) {
        let before = clock(libc::CLOCK_BOOTTIME);
        change();
        let after = clock(libc::CLOCK_BOOTTIME);
        write!(self.lines, "{} {before} {after} ", self.tid).unwrap();
        match ids {
            Some(ids) => {
                hex(&mut self.lines, &ids.trace);
                self.lines.push(' ');
                hex(&mut self.lines, &ids.span);
            }
            None => self.lines.push_str("- -"),
        }
        self.lines.push('\n');
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        LOG.lock().unwrap().push_str(&self.lines);
    }
}

/// One context in place of another, and back.
fn swap(log: &mut Log) {
    let outer = Ids::root();
    let inner = outer.child();
    let mut kept = None;
    log.change(Some(&outer), || drop(outer.context().attach()));
    burn(40);
    log.change(Some(&inner), || kept = inner.context().attach());
    burn(30);
    log.change(Some(&outer), || drop(kept.take().unwrap().attach()));
    burn(20);
    log.change(None, || drop(OwnedThreadContext::detach()));
}

/// One record, with other ids again and again.
fn update(log: &mut Log) {
    for _ in 0..4 {
        let ids = Ids::root();
        log.change(Some(&ids), || ids.update());
        burn(30);
    }
    log.change(None, || drop(OwnedThreadContext::detach()));
}

fn requests(end: u64) {
    let mut log = Log::new();
    while clock(libc::CLOCK_PROCESS_CPUTIME_ID) < end {
        swap(&mut log);
        burn(15);
        update(&mut log);
        burn(15);
    }
}

/// Of a thread that does nothing else.
fn request() {
    swap(&mut Log::new());
}

/// A process that continues behind it, one that executes this program.
fn children() {
    let mut log = Log::new();
    let ids = Ids::root();
    log.change(Some(&ids), || ids.update());
    let mut program = Command::new(std::env::current_exe().unwrap()).arg("1").spawn().unwrap();
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        burn(1000);
        unsafe { libc::_exit(0) };
    }
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    program.wait().unwrap();
    log.change(None, || drop(OwnedThreadContext::detach()));
}

fn publish(name: &str) {
    let metadata = TracerMetadata {
        service_name: Some(name.into()),
        threadlocal_metadata: Some(ThreadLocalMetadata {
            attribute_keys: vec!["http.route".into()],
            ..Default::default()
        }),
        ..Default::default()
    };
    // Its file is not what profd reads, and may be closed.
    store_tracer_metadata(&metadata).unwrap();
}

fn run(name: &str, warm: u64, seconds: u64, log: &str) {
    publish(name);
    burn(warm * 1000);
    let end = clock(libc::CLOCK_PROCESS_CPUTIME_ID) + seconds * 1000 * MS;
    std::thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| requests(end));
        }
        s.spawn(children);
        while clock(libc::CLOCK_PROCESS_CPUTIME_ID) < end {
            std::thread::spawn(request).join().unwrap();
        }
    });
    std::fs::write(log, &*LOG.lock().unwrap()).unwrap();
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let at = |i: usize| args[i].parse::<u64>().unwrap();
    if args.len() == 2 {
        return burn(at(1) * 1000);
    }
    let child = unsafe { libc::fork() };
    if child == 0 {
        run("rust-child", at(1), at(2), &format!("{}.child", args[3]));
        return;
    }
    run("rust", at(1), at(2), &args[3]);
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}
