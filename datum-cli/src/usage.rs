//! What the process has used: processor time and memory.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

/// Processor time of the whole process so far, user and system; zero where the system does not tell.
pub(crate) fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let duration = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec().saturating_mul(1_000_000).saturating_add(time.tv_usec());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    duration(usage.user_time()) + duration(usage.system_time())
}

/// The most memory the process had resident at once, in bytes; zero where the system does not tell.
///
/// On Linux from `VmHWM`: the figure of `getrusage` there also covers the process that started this one.
pub(crate) fn peak_rss_bytes() -> u64 {
    if let Some(kilobytes) = high_water_mark_kb() {
        return kilobytes.saturating_mul(1_024);
    }
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0 };
    let unit = if cfg!(target_os = "macos") { 1 } else { 1_024 };
    u64::try_from(usage.max_rss()).unwrap_or(0).saturating_mul(unit)
}

fn high_water_mark_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_running_process_has_used_something() {
        let before = super::cpu_time();
        let mut sum = 0_u64;
        while super::cpu_time() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(super::peak_rss_bytes() > 100_000);
    }
}
