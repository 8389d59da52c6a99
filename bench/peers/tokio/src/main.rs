// SPDX-License-Identifier: MIT
//! peer-tokio [JOBS [IN_FLIGHT]]: the peer of bench/hop.c: tokio's spawn_blocking() of an empty function, in a runtime
//! of as many threads as there are processors.

use std::time::Instant;

async fn ask(jobs: u64) {
    for _ in 0..jobs {
        tokio::task::spawn_blocking(|| ()).await.expect("an empty job does not panic");
    }
}

async fn hop(jobs: u64, in_flight: u64) {
    let askers: Vec<_> = (0..in_flight).map(|_| tokio::spawn(ask(jobs / in_flight))).collect();
    for asker in askers {
        asker.await.expect("an asker does not panic");
    }
}

fn argument(i: usize, otherwise: u64) -> u64 {
    std::env::args().nth(i).map_or(otherwise, |a| a.parse().expect("a number"))
}

fn main() {
    let (jobs, in_flight) = (argument(1, 64000), argument(2, 1));
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
    let ns = runtime.block_on(async {
        hop(jobs / 10, in_flight).await;
        let start = Instant::now();
        hop(jobs, in_flight).await;
        start.elapsed().as_nanos() as f64
    });
    println!("{{\"operations\": {jobs}, \"wall_ns\": {:.3}}}", ns / jobs as f64);
}
