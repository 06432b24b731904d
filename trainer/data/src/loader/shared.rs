//! Decoded images that the ranks of a machine share: each is decoded by one of them and read by all. They are in a
//! file without a name that the ranks inherit, so nothing of it stays when they have ended, however they end. No
//! rank ever waits for another: an image that another one is just decoding is decoded once more. A rank that dies
//! meanwhile leaves an image that is never kept.
//!
//! The file begins with numbers: those of [`Number`], then one for each image, which is [`EMPTY`], [`CLAIMED`], or
//! [`READY`] plus the place of its pixels. The pixels follow, without gaps, in the order in which they came.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::param::page_size;

use super::mapping::{SharedBytes, SharedNumbers};

/// The numbers at the beginning of the file, which is empty at first.
#[derive(Debug, Clone, Copy)]
enum Number {
    /// A fingerprint of the images, by which ranks know that they mean the same ones; 0 until a rank has come.
    Layout,
    /// The bytes for pixels plus one, as the first rank decides it; 0 until then.
    Budget,
    /// Those that are taken.
    Taken,
    /// How often an image was decoded, by all ranks.
    Decoded,
}

/// How many they are.
const NUMBERS: usize = 4;

/// No rank has the image yet.
const EMPTY: u64 = 0;
/// A rank is decoding it, or died when it did.
const CLAIMED: u64 = 1;
/// The pixels are there, at the place that is added to this.
const READY: u64 = 2;

/// A file for [`SharedImages`], which ranks must inherit.
///
/// # Errors
///
/// If the system has no such files.
pub(super) fn create() -> io::Result<File> {
    let file = File::from(memfd_create("decoded images", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(size_of::<[u64; NUMBERS]>() as u64)?;
    // Reading what was cut off would end a process.
    fcntl_add_seals(&file, SealFlags::SHRINK)?;
    Ok(file)
}

/// The images of a data set at one size, as one of the ranks that share them sees them.
#[derive(Debug)]
pub(super) struct SharedImages {
    file: File,
    numbers: SharedNumbers,
    pixels: SharedBytes,
    /// Where the pixels begin in the file.
    first: u64,
    budget: u64,
    decided_here: bool,
}

impl SharedImages {
    /// The images in a file of [`create`], which are `count`. `layout` is the same for ranks that mean the same images.
    /// The bytes to keep are `budget` if this rank comes first. `None` if other ranks mean other images.
    pub(super) fn open(file: File, count: usize, layout: u64, budget: u64) -> io::Result<Option<Self>> {
        let beginning = SharedNumbers::map(&file, NUMBERS)?;
        let number = |number: Number| &beginning.get()[number as usize];
        // Of ranks that come at the same time, one is first, and the others take what it has decided.
        let decide = |number: &AtomicU64, value: u64| {
            number.compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed).err()
        };
        let layout = layout.max(1);
        if decide(number(Number::Layout), layout).is_some_and(|other| other != layout) {
            return Ok(None);
        }
        let decided = decide(number(Number::Budget), budget.saturating_add(1));
        let (budget, decided_here) = (decided.map_or(budget, |other| other - 1), decided.is_none());
        let numbers = NUMBERS + count;
        let pixels = (numbers * size_of::<AtomicU64>()).next_multiple_of(page_size());
        // All ranks give the file the same length. A mapping cannot be empty.
        let length = usize::try_from(budget).ok().and_then(|budget| pixels.checked_add(budget.max(1)));
        let length = length.ok_or(io::ErrorKind::OutOfMemory)?;
        file.set_len(length as u64)?;
        let numbers = SharedNumbers::map(&file, numbers)?;
        let bytes = SharedBytes::map(&file, pixels..length)?;
        let images = Self { file, numbers, pixels: bytes, first: pixels as u64, budget, decided_here };
        Ok(Some(images))
    }

    /// The pixels of an image, which are `length` bytes, if a rank has published them.
    #[expect(unsafe_code, reason = "reads bytes that another process wrote")]
    pub(super) fn get(&self, image: usize, length: usize) -> Option<&[u8]> {
        let place = self.of_image(image).load(Ordering::Acquire).checked_sub(READY)?;
        let place = usize::try_from(place).ok()?;
        // SAFETY: no bytes are taken twice, and who takes some writes them before it publishes their place, with
        // `Release` and never again; the `Acquire` above saw that. Ranks of the same layout agree on the length.
        unsafe { self.pixels.get(place..place.checked_add(length)?) }
    }

    /// Claims an image of `length` bytes for this caller to decode. `None` if another one has it, or if there is no
    /// memory for it.
    pub(super) fn claim(&self, image: usize, length: usize) -> Option<Claim<'_>> {
        if self.to_come() < length as u64 {
            return None;
        }
        let state = self.of_image(image);
        state.compare_exchange(EMPTY, CLAIMED, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(Claim { images: self, state })
    }

    /// Whether this rank came first and decided how many bytes to keep.
    pub(super) fn decided_here(&self) -> bool {
        self.decided_here
    }

    /// The bytes that pixels may still take.
    pub(super) fn to_come(&self) -> u64 {
        self.budget.saturating_sub(self.number(Number::Taken).load(Ordering::Relaxed))
    }

    /// Keeps at most this many bytes more from now on.
    pub(super) fn keep_at_most(&self, bytes: u64) {
        // What is taken has no gaps only as long as nobody calls this.
        self.number(Number::Taken).fetch_max(self.budget.saturating_sub(bytes), Ordering::Relaxed);
    }

    /// Whether an image is kept.
    pub(super) fn has(&self, image: usize) -> bool {
        self.of_image(image).load(Ordering::Relaxed) >= READY
    }

    /// Counts an image that this rank has decoded.
    pub(super) fn count_decoded(&self) {
        self.number(Number::Decoded).fetch_add(1, Ordering::Relaxed);
    }

    /// How often ranks have decoded an image.
    pub(super) fn decoded(&self) -> u64 {
        self.number(Number::Decoded).load(Ordering::Relaxed)
    }

    fn number(&self, number: Number) -> &AtomicU64 {
        &self.numbers.get()[number as usize]
    }

    fn of_image(&self, image: usize) -> &AtomicU64 {
        &self.numbers.get()[NUMBERS + image]
    }

    /// Takes memory for pixels. Returns its place among them, or `None` if there is not enough.
    fn take(&self, length: u64) -> Option<u64> {
        let more = |taken: u64| taken.checked_add(length).filter(|taken| *taken <= self.budget);
        self.number(Number::Taken).fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }
}

/// An image that nobody else decodes. If it is not published, the next caller can claim it.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    images: &'a SharedImages,
    state: &'a AtomicU64,
}

impl Claim<'_> {
    /// Gives the pixels to all ranks, unless the memory for them was taken meanwhile.
    ///
    /// # Errors
    ///
    /// If the system has no memory for them. No images are kept from then on.
    pub(super) fn publish(self, pixels: &[u8]) -> io::Result<()> {
        let SharedImages { file, first, .. } = self.images;
        let Some(place) = self.images.take(pixels.len() as u64) else { return Ok(()) };
        if let Err(error) = file.write_all_at(pixels, first + place) {
            self.images.keep_at_most(0);
            return Err(error);
        }
        self.state.store(READY + place, Ordering::Release);
        Ok(())
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // It fails if the image is published.
        let _ = self.state.compare_exchange(CLAIMED, EMPTY, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::io::{FdFlags, fcntl_setfd};
    use rustix::process::{Signal, getpid, kill_process};
    use yolo_base::env::YOLO_IMAGES_FD;

    use super::*;

    /// What `create` made, as another rank opens it.
    fn opened(file: &File, images: usize, budget: u64) -> SharedImages {
        SharedImages::open(file.try_clone().unwrap(), images, 7, budget).unwrap().unwrap()
    }

    /// The pixels of an image: another length and other bytes for each.
    fn pixels(image: usize) -> Vec<u8> {
        (0..1000 + 37 * image).map(|at| (at * 31 + image) as u8).collect()
    }

    /// Publishes an image, unless another one has it or memory is short.
    fn publish(shared: &SharedImages, image: usize) -> bool {
        let claim = shared.claim(image, pixels(image).len());
        claim
            .inspect(|_| shared.count_decoded())
            .map(|claim| claim.publish(&pixels(image)).unwrap())
            .is_some()
    }

    fn get(shared: &SharedImages, image: usize) -> Option<&[u8]> {
        shared.get(image, pixels(image).len())
    }

    #[test]
    fn one_rank_publishes_an_image_and_all_see_it() {
        let file = create().unwrap();
        let ranks = [0, 1].map(|_| opened(&file, 3, 10_000));
        assert!(ranks[0].decided_here() && !ranks[1].decided_here());
        assert!(get(&ranks[1], 2).is_none());
        assert!(publish(&ranks[0], 2));
        assert!(ranks.iter().all(|rank| get(rank, 2) == Some(&pixels(2)[..])));
        assert!(ranks[1].claim(2, pixels(2).len()).is_none(), "it is there already");
        assert!(get(&ranks[1], 0).is_none());
        drop(ranks);
        assert_eq!(
            get(&opened(&file, 3, 10_000), 2),
            Some(&pixels(2)[..]),
            "a rank that comes later sees it too"
        );
    }

    #[test]
    fn each_image_is_published_once_by_threads_of_all_ranks() {
        const IMAGES: usize = 200;
        let file = create().unwrap();
        let needed: usize = (0..IMAGES).map(|image| pixels(image).len()).sum();
        let ranks = [0, 1, 2].map(|_| opened(&file, IMAGES, needed as u64));
        std::thread::scope(|scope| {
            for (number, rank) in ranks.iter().enumerate().flat_map(|rank| [rank; 3]) {
                scope.spawn(move || {
                    for image in 0..IMAGES {
                        let image = (image * 7 + number * 50) % IMAGES;
                        match get(rank, image) {
                            Some(found) => assert_eq!(found, pixels(image)),
                            None => _ = publish(rank, image),
                        }
                    }
                });
            }
        });
        assert!((0..IMAGES).all(|image| get(&ranks[1], image) == Some(&pixels(image)[..])));
        assert_eq!((ranks[0].decoded(), ranks[2].to_come()), (IMAGES as u64, 0), "each took its memory once");
    }

    #[test]
    fn what_exceeds_the_budget_of_the_first_rank_is_not_kept() {
        let file = create().unwrap();
        let budget = (pixels(0).len() + pixels(2).len()) as u64;
        let ranks = [opened(&file, 3, budget), opened(&file, 3, 1 << 40)];
        assert_eq!([2, 0, 1].map(|image| publish(&ranks[1], image)), [true, true, false]);
        assert!(get(&ranks[0], 2).is_some() && get(&ranks[0], 0).is_some() && get(&ranks[0], 1).is_none());
        assert_eq!((ranks[0].decoded(), ranks[0].to_come()), (2, 0));
        let file = create().unwrap();
        let rank = opened(&file, 3, 1 << 20);
        rank.keep_at_most(pixels(0).len() as u64);
        assert_eq!([0, 1, 2].map(|image| publish(&rank, image)), [true, false, false]);
        assert!(!publish(&opened(&create().unwrap(), 3, 0), 0), "nothing fits in nothing");
    }

    #[test]
    fn an_image_that_a_rank_could_not_decode_can_be_claimed_again() {
        let file = create().unwrap();
        let ranks = [0, 1].map(|_| opened(&file, 1, 10_000));
        let claim = ranks[0].claim(0, pixels(0).len()).unwrap();
        assert!(!publish(&ranks[1], 0), "another rank does not wait for it");
        drop(claim);
        assert!(publish(&ranks[1], 0));
    }

    #[test]
    fn ranks_with_other_images_do_not_share() {
        let file = create().unwrap();
        let open = |layout, images| {
            SharedImages::open(file.try_clone().unwrap(), images, layout, 1000).unwrap().is_some()
        };
        assert!(open(5, 10));
        assert!(!open(6, 10) && !open(0, 10_000));
        assert!(open(5, 10));
    }

    #[test]
    fn memory_that_the_system_refuses_ends_the_keeping_and_nothing_else() {
        let file = create().unwrap();
        let rank = opened(&file, 2, 10_000);
        // What the system refuses here is to write; a lack of memory has the same effect.
        fcntl_add_seals(&file, SealFlags::FUTURE_WRITE).unwrap();
        let claim = rank.claim(0, pixels(0).len()).unwrap();
        assert!(claim.publish(&pixels(0)).is_err());
        assert!(!rank.has(0) && !publish(&rank, 1));
        assert_eq!(rank.to_come(), 0);
    }

    /// A rank that has written half of image 0 when it is killed.
    #[test]
    #[ignore = "a process that the next test starts"]
    fn a_rank_that_is_killed() {
        let Ok(number) = std::env::var(YOLO_IMAGES_FD) else { return };
        let file = File::options().read(true).write(true).open(format!("/proc/self/fd/{number}")).unwrap();
        let shared = opened(&file, 3, 10_000);
        assert!(publish(&shared, 2));
        let claim = shared.claim(0, pixels(0).len()).unwrap();
        let place = shared.take(pixels(0).len() as u64).unwrap();
        file.write_all_at(&pixels(0)[..500], claim.images.first + place).unwrap();
        kill_process(getpid(), Signal::KILL).unwrap();
    }

    #[test]
    fn a_rank_that_is_killed_in_the_middle_blocks_and_spoils_nothing() {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::process::ExitStatusExt as _;

        let file = create().unwrap();
        let inherited = file.try_clone().unwrap();
        fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
        let mut rank = Command::new(std::env::current_exe().unwrap());
        rank.args(["--exact", "--ignored", "loader::shared::tests::a_rank_that_is_killed"]);
        let ended = rank.env(YOLO_IMAGES_FD, inherited.as_raw_fd().to_string()).output().unwrap();
        assert_eq!(ended.status.signal(), Some(9), "{}", String::from_utf8_lossy(&ended.stdout));

        let shared = opened(&file, 3, 10_000);
        assert!(!shared.decided_here());
        assert_eq!(get(&shared, 2), Some(&pixels(2)[..]), "what it had published stays");
        assert!(
            get(&shared, 0).is_none() && !publish(&shared, 0),
            "nobody sees a half, or waits for the rest"
        );
        assert!(publish(&shared, 1));
        assert_eq!(get(&shared, 1), Some(&pixels(1)[..]));
    }
}
