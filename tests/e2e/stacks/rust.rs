// SPDX-License-Identifier: Apache-2.0
// rust MS: for MS ms of CPU time closures, sorting, panics in flight, a thread.

extern "C" {
    fn clock() -> i64; // microseconds of CPU time, POSIX
}

// std::hint has one since 1.66; Debian 12 has 1.63.
fn black_box<T>(x: T) -> T {
    let y = unsafe { std::ptr::read_volatile(&x) };
    std::mem::forget(x);
    y
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn st_spin(n: u64) -> u64 {
    let mut x = n;
    for i in 0..n {
        x = black_box(x ^ i);
    }
    x
}

#[no_mangle]
#[inline(never)]
pub extern "C" fn st_deep(n: u64) -> u64 {
    if n == 0 {
        return st_spin(200000);
    }
    black_box(st_deep(n - 1)) + 1
}

#[no_mangle]
#[inline(never)]
pub fn st_sort() {
    let mut v: Vec<u64> = (0..100).map(|i| i * 7919 % 101).collect();
    v.sort_by(|a, b| {
        st_spin(500);
        a.cmp(b)
    });
    black_box(v);
}

#[no_mangle]
#[inline(never)]
pub fn st_panic(n: u32) {
    if n == 0 {
        std::panic::resume_unwind(Box::new(1));
    }
    st_panic(black_box(n - 1));
    black_box(n);
}

#[no_mangle]
#[inline(never)]
pub fn st_rounds(end: i64) {
    while unsafe { clock() } < end {
        for _ in 0..5 {
            black_box(st_deep(30));
        }
        st_sort();
        for _ in 0..60 {
            let _ = std::panic::catch_unwind(|| st_panic(10));
        }
    }
}

fn main() {
    let ms: i64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let end = ms * 1000;
    let t = std::thread::spawn(move || st_rounds(end));
    st_rounds(end);
    t.join().unwrap();
}
