//! Dialling, backoff and reconnection, shared by every room that opens sockets.
