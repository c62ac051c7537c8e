//! Ctrl-C and SIGTERM: the request to stop in good order.

use crate::error::CliError;

/// Waits until the user (Ctrl-C) or the system (SIGTERM) asks the command to end.
///
/// From the first call on, neither ends the process by itself. Cancel safe.
pub(crate) async fn asked_to_stop() -> Result<(), CliError> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(CliError::Runtime)?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed.map_err(CliError::Runtime),
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map_err(CliError::Runtime)
}
