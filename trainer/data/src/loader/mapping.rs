//! A part of a file that several processes have in memory. Both forms are as safe as what they give out: counters
//! that are atomic in every process, and bytes of which the caller says that nobody writes them any more.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of a file in the address space of this process, until it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

impl Mapping {
    /// The bytes of `file` in this range, which begins at a multiple of the page size.
    #[expect(unsafe_code, reason = "calls mmap")]
    fn new(file: &File, range: Range<usize>, protection: ProtFlags) -> io::Result<Self> {
        let (length, offset) = (range.len(), range.start as u64);
        // SAFETY: the address is null, so the system chooses one where nothing is mapped yet. Nothing refers to the
        // bytes until the two types below do, under the conditions that they state.
        let start =
            unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, file, offset)? };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }
}

impl Drop for Mapping {
    #[expect(unsafe_code, reason = "calls munmap")]
    fn drop(&mut self) {
        // SAFETY: this is the range that `mmap` returned, once. What the two types below give out borrows them, so
        // nothing refers to it any more. It fails only for a range that is not mapped.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

#[expect(unsafe_code, reason = "it holds a pointer")]
// SAFETY: a mapping belongs to the process and not to a thread, and nothing here changes after it is made.
unsafe impl Send for Mapping {}
#[expect(unsafe_code, reason = "it holds a pointer")]
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Numbers that several processes read and write.
#[derive(Debug)]
pub(super) struct SharedNumbers(Mapping);

impl SharedNumbers {
    /// The first `count` numbers of a file, which must be that long and must never become shorter.
    pub(super) fn map(file: &File, count: usize) -> io::Result<Self> {
        let bytes = 0..count * size_of::<AtomicU64>();
        Mapping::new(file, bytes, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }

    /// The numbers.
    #[expect(unsafe_code, reason = "reads mapped memory")]
    pub(super) fn get(&self) -> &[AtomicU64] {
        let Mapping { start, length } = &self.0;
        // SAFETY: a mapping begins at a page, so the numbers are aligned. It is as long as the file or shorter, and
        // lives as long as the result. Every process uses these bytes through this function alone, so all accesses
        // are atomic; any bytes are valid numbers.
        unsafe {
            std::slice::from_raw_parts(start.cast::<AtomicU64>().as_ptr(), length / size_of::<AtomicU64>())
        }
    }
}

/// Bytes that several processes read. They write them through the file, which fails if memory is short where
/// writing to a mapping would end the process.
#[derive(Debug)]
pub(super) struct SharedBytes(Mapping);

impl SharedBytes {
    /// The bytes of a file in this range, which begins at a multiple of the page size. The file must be that long
    /// and must never become shorter.
    pub(super) fn map(file: &File, range: Range<usize>) -> io::Result<Self> {
        Mapping::new(file, range, ProtFlags::READ).map(Self)
    }

    /// The bytes in this range of the mapping; `None` if it is not in it.
    ///
    /// # Safety
    ///
    /// No process may write these bytes from now on while this mapping exists, and what was written must have
    /// happened before this call.
    #[expect(unsafe_code, reason = "reads mapped memory, under a condition that only the caller knows")]
    pub(super) unsafe fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        let Mapping { start, length } = &self.0;
        if range.start > range.end || range.end > *length {
            return None;
        }
        // SAFETY: the range is inside of the mapping, which lives as long as the result. The caller knows that
        // nobody writes it.
        Some(unsafe { std::slice::from_raw_parts(start.cast::<u8>().as_ptr().add(range.start), range.len()) })
    }
}
