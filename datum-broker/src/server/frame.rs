//! Frames: a length of four bytes, then a message.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of the length.
pub(crate) const LENGTH: usize = 4;
/// How much is asked of the allocator before the bytes have come.
const STEP: usize = 1 << 20;

/// Reads one frame; `None` at the end of the stream.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for a length that is negative or above `limit`, before anything is allocated;
/// otherwise what the socket says.
pub(crate) async fn read<R: AsyncRead + Unpin>(socket: &mut R, limit: usize) -> io::Result<Option<Bytes>> {
    let mut length = [0; LENGTH];
    match socket.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = i32::from_be_bytes(length);
    let size = usize::try_from(length).ok().filter(|size| *size <= limit).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a request says it has {length} bytes, at most {limit} are taken"),
        )
    })?;
    let mut frame = BytesMut::with_capacity(size.min(STEP));
    while frame.len() < size {
        let left = size - frame.len();
        frame.reserve(left.min(STEP));
        if (&mut *socket).take(left as u64).read_buf(&mut frame).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Some(frame.freeze()))
}
