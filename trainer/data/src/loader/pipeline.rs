//! The pipeline of both loaders. Two producers make alternate batches, so that one batch is ready while the
//! next is being made. One pool of threads loads the images of both, directly into the batch. Producers run
//! ahead of the consumer by a bounded number of batches, into the next epoch if its images are known, and end
//! when the loader is dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::store::LoadBuffers;
use super::{Batch, Item, LoaderError};
use crate::augment::picture::PictureBuffers;
use crate::image::Image;

/// The number of producers, and so of batches in progress.
const PRODUCERS: usize = 2;

/// The buffers for one image of a mosaic.
#[derive(Debug, Default)]
pub(super) struct TileBuffers {
    pub(super) load: LoadBuffers,
    /// The image in the size of its letterbox.
    pub(super) fitted: Image,
}

/// The buffers for making one image; the next image reuses them.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The images of a picture and of the one that is mixed into it.
    pub(super) tiles: [[TileBuffers; 4]; 2],
    /// The canvases of an image and of the one that is mixed into it, or a letterboxed image.
    pub(super) canvases: [Image; 2],
    /// For writing the picture.
    pub(super) picture: PictureBuffers,
    /// The planes of one of the four images of a quad.
    pub(super) quadrant: Vec<u8>,
    /// The time in which images were read, decoded and resized since it was taken last.
    pub(super) decoding: Duration,
}

/// The time that the threads of a loader have worked, all together, since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Reading, decoding and resizing images.
    pub decode: Duration,
    /// All else that makes an image of a batch: transform, colors, flips, labels.
    pub augment: Duration,
}

/// [`Work`] in nanoseconds, as threads add to it.
#[derive(Debug, Default)]
struct WorkSum {
    decode: AtomicU64,
    augment: AtomicU64,
}

impl WorkSum {
    fn add(&self, decode: Duration, whole: Duration) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.decode.fetch_add(nanoseconds(decode), Ordering::Relaxed);
        self.augment.fetch_add(nanoseconds(whole.saturating_sub(decode)), Ordering::Relaxed);
    }
}

/// The shape and the images of a batch.
pub(super) struct BatchPlan {
    pub(super) height: usize,
    pub(super) width: usize,
    /// Each is an entry of the epoch's order.
    pub(super) images: Vec<usize>,
    /// How many of them become one image of the batch.
    pub(super) per_image: usize,
}

/// The item of an image, and its targets without the index in the batch.
pub(super) type Made = (Item, Vec<[f32; 5]>);

/// What differs between training and validation.
pub(super) trait Source: Send + Sync + 'static {
    /// Whether the batches of the epoch that follows can be made ahead.
    fn runs_ahead(&self) -> bool;
    /// The number of batches in an epoch.
    fn batches(&self) -> usize;
    /// The order of images in an epoch, as numbers that [`Self::make`] understands.
    fn order(&self, epoch: u64) -> Vec<usize>;
    /// The shape and the images of a batch.
    fn plan(&self, order: &[usize], batch: usize) -> BatchPlan;
    /// Makes one image of as many as the plan says and writes its pixels to `planes`: R, G, B.
    fn make(
        &self,
        epoch: u64,
        images: &[usize],
        size: [usize; 2],
        scratch: &mut Scratch,
        planes: &mut [u8],
    ) -> Result<Made, LoaderError>;
}

/// The position of a batch in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    epoch: u64,
    batch: usize,
}

impl Position {
    /// The position after this one if epochs have `batches` batches.
    fn next(self, batches: usize) -> Self {
        if self.batch + 1 < batches {
            Self { batch: self.batch + 1, ..self }
        } else {
            Self { epoch: self.epoch + 1, batch: 0 }
        }
    }
}

/// Returns the pixel buffers of used batches, so that new batches need no new memory.
#[derive(Debug, Clone)]
pub struct Recycler(Sender<Vec<u8>>);

impl Recycler {
    /// Returns the buffer of a batch that is no longer needed.
    pub fn give(&self, pixels: Vec<u8>) {
        // If enough buffers are waiting, this one is freed.
        let _ = self.0.try_send(pixels);
    }
}

/// Ends the making of batches from another thread than the one that waits for them, which gets an error then. The loader
/// continues when its batches are asked for from a position.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Stops after the images that are being made now.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether it was stopped; it no longer is.
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Makes batches; shared by all threads.
struct Maker<S> {
    source: S,
    pool: Option<ThreadPool>,
    scratch: Mutex<Vec<Scratch>>,
    used: Receiver<Vec<u8>>,
    work: WorkSum,
    halt: Halt,
}

impl<S: Source> Maker<S> {
    /// Makes one batch; `None` if it is stopped.
    fn batch(
        &self,
        epoch: u64,
        order: &[usize],
        batch: usize,
        stop: &AtomicBool,
    ) -> Option<Result<Batch, LoaderError>> {
        let BatchPlan { height, width, images, per_image } = self.source.plan(order, batch);
        let mut pixels = self.used.try_recv().unwrap_or_default();
        // Every byte is overwritten below, so the old bytes need not be cleared.
        pixels.resize(images.len() / per_image * 3 * height * width, 0);
        let make = |(planes, images): (&mut [u8], &[usize])| {
            if stop.load(Ordering::Relaxed) || self.halt.is_stopped() {
                return Err(None);
            }
            let mut scratch = self.scratch().pop().unwrap_or_default();
            let began = Instant::now();
            let made = self.source.make(epoch, images, [height, width], &mut scratch, planes);
            self.work.add(std::mem::take(&mut scratch.decoding), began.elapsed());
            self.scratch().push(scratch);
            made.map_err(Some)
        };
        let size = 3 * height * width;
        let made: Result<Vec<Made>, Option<LoaderError>> = match &self.pool {
            Some(pool) => pool.install(|| {
                let images = images.par_chunks_exact(per_image);
                pixels.par_chunks_exact_mut(size).zip(images).with_max_len(1).map(make).collect()
            }),
            None => pixels.chunks_exact_mut(size).zip(images.chunks_exact(per_image)).map(make).collect(),
        };
        let made = match made {
            Ok(made) => made,
            Err(error) => return error.map(Err),
        };
        let mut targets = Vec::with_capacity(made.iter().map(|(_, targets)| targets.len()).sum());
        let mut items = Vec::with_capacity(made.len());
        for (i, (item, of_image)) in made.into_iter().enumerate() {
            targets.extend(of_image.into_iter().map(|[class, x, y, w, h]| [i as f32, class, x, y, w, h]));
            items.push(item);
        }
        Some(Ok(Batch { height, width, pixels, targets, items }))
    }

    fn scratch(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        // A panic cannot leave the buffers in an invalid state.
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request to a producer: make every [`PRODUCERS`]th batch, starting at `from`.
struct Request {
    /// The epoch of the stream's first batch.
    epoch: u64,
    from: Position,
    out: Sender<Result<Batch, LoaderError>>,
    stop: Arc<AtomicBool>,
    /// Closes when the batch before this producer's first one is made. So all threads work on the batch
    /// that the consumer waits for.
    before: Option<Receiver<Nothing>>,
    /// Closes [`Request::before`] of the next producer.
    made: Option<Sender<Nothing>>,
}

/// Is never sent; only the closing of the channel counts.
enum Nothing {}

/// The batches of a request, alternately from each producer.
struct Stream {
    next: Position,
    turn: usize,
    inputs: Vec<Receiver<Result<Batch, LoaderError>>>,
    stop: Arc<AtomicBool>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Delivers batches in order.
pub(super) struct Pipeline<S: Source> {
    maker: Arc<Maker<S>>,
    recycler: Recycler,
    stream: Option<Stream>,
    producers: Vec<(Sender<Request>, JoinHandle<()>)>,
    /// The order of images in the current epoch, if the caller's thread makes the batches.
    order: Option<(u64, Vec<usize>)>,
}

impl<S: Source> Pipeline<S> {
    /// Starts `workers` threads for `source`. Without threads, each call of [`Self::batch`] makes a batch.
    pub(super) fn new(source: S, workers: usize) -> Result<Self, LoaderError> {
        let pool = match workers {
            0 => None,
            _ => Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(workers)
                    .thread_name(|i| format!("loader-{i}"))
                    .start_handler(|_| yield_to_training())
                    .build()
                    .map_err(|source| LoaderError::Threads { count: workers, source: source.into() })?,
            ),
        };
        let (recycler, used) = bounded(2 * PRODUCERS);
        let threaded = pool.is_some();
        let maker = Arc::new(Maker {
            source,
            pool,
            scratch: Mutex::default(),
            used,
            work: WorkSum::default(),
            halt: Halt::default(),
        });
        let mut pipeline =
            Self { maker, recycler: Recycler(recycler), stream: None, producers: Vec::new(), order: None };
        if threaded {
            for i in 0..PRODUCERS {
                let (requests, incoming) = unbounded();
                let maker = Arc::clone(&pipeline.maker);
                let thread = std::thread::Builder::new()
                    .name(format!("batches-{i}"))
                    .spawn(move || produce(&maker, &incoming))
                    .map_err(|source| LoaderError::Threads { count: PRODUCERS, source: source.into() })?;
                pipeline.producers.push((requests, thread));
            }
        }
        Ok(pipeline)
    }

    /// The same pipeline with another number of threads, which has made no batch yet.
    pub(super) fn with_workers(self, workers: usize) -> Result<Self, LoaderError> {
        let maker = Arc::clone(&self.maker);
        // The producers share the maker until they end.
        drop(self);
        Self::new(Arc::into_inner(maker).ok_or(LoaderError::Worker)?.source, workers)
    }

    pub(super) fn source(&self) -> &S {
        &self.maker.source
    }

    /// The time that the threads have worked.
    pub(super) fn work(&self) -> Work {
        let read = |sum: &AtomicU64| Duration::from_nanos(sum.load(Ordering::Relaxed));
        Work { decode: read(&self.maker.work.decode), augment: read(&self.maker.work.augment) }
    }

    pub(super) fn recycler(&self) -> Recycler {
        self.recycler.clone()
    }

    /// Whether threads make the batches. Without them, the caller does.
    pub(super) fn has_threads(&self) -> bool {
        !self.producers.is_empty()
    }

    /// Ends the making of batches.
    pub(super) fn halt(&self) -> Halt {
        self.maker.halt.clone()
    }

    /// Makes batches again after [`Halt::stop`].
    pub(super) fn resume(&mut self) {
        if self.maker.halt.take() {
            self.stream = None;
        }
    }

    /// The batch at a position of the run. If batches are requested in order, it is usually ready.
    pub(super) fn batch(&mut self, epoch: u64, batch: usize) -> Result<Batch, LoaderError> {
        let position = Position { epoch, batch };
        if self.producers.is_empty() {
            if self.order.as_ref().is_none_or(|(of, _)| *of != epoch) {
                self.order = Some((epoch, self.maker.source.order(epoch)));
            }
            let order = self.order.as_ref().map_or(&[][..], |(_, order)| order);
            return self
                .maker
                .batch(epoch, order, batch, &AtomicBool::new(false))
                .unwrap_or(Err(LoaderError::Worker));
        }
        self.seek(epoch, batch);
        let Some(stream) = &mut self.stream else { return Err(LoaderError::Worker) };
        let received = stream.inputs[stream.turn].recv().unwrap_or(Err(LoaderError::Worker));
        stream.turn = (stream.turn + 1) % PRODUCERS;
        stream.next = position.next(self.maker.source.batches());
        let ended = stream.next.epoch != epoch && !self.maker.source.runs_ahead();
        if received.is_err() || ended {
            self.stream = None;
        }
        received
    }

    /// Stops the producers until the next batch is requested, and forgets the order of the epoch.
    pub(super) fn pause(&mut self) {
        self.stream = None;
        self.order = None;
    }

    /// Starts the producers at a position, so that its batch is ready sooner.
    pub(super) fn seek(&mut self, epoch: u64, batch: usize) {
        let position = Position { epoch, batch };
        if self.producers.is_empty() || self.stream.as_ref().is_some_and(|stream| stream.next == position) {
            return;
        }
        // The old stream must stop before the producers get new requests.
        self.stream = None;
        let stop = Arc::new(AtomicBool::new(false));
        let mut from = position;
        let mut inputs = Vec::new();
        let mut before = None;
        for (requests, _) in &self.producers {
            let (out, input) = bounded(1);
            let (made, next) = bounded(0);
            // If a producer has ended, receiving its batch fails.
            let stop = Arc::clone(&stop);
            let _ = requests.send(Request {
                epoch,
                from,
                out,
                stop,
                before: before.replace(next),
                made: Some(made),
            });
            inputs.push(input);
            from = from.next(self.maker.source.batches());
        }
        self.stream = Some(Stream { next: position, turn: 0, inputs, stop });
    }
}

impl<S: Source> Drop for Pipeline<S> {
    fn drop(&mut self) {
        self.stream = None;
        for (requests, thread) in self.producers.drain(..) {
            drop(requests);
            // A panic of a producer has already been reported as `LoaderError::Worker`.
            let _ = thread.join();
        }
    }
}

/// Lowers the priority of the calling thread, on Linux only. A step on the CPU waits for the slowest of its
/// threads, while batches are made ahead, so the threads of the model go first.
fn yield_to_training() {
    #[cfg(target_os = "linux")]
    {
        // On Linux, niceness is per thread. If this fails, training is only slower.
        let _ = rustix::process::nice(5);
    }
}

/// Serves requests until the loader is dropped.
fn produce<S: Source>(maker: &Maker<S>, requests: &Receiver<Request>) {
    for Request { epoch, from, out, stop, before, mut made } in requests {
        if let Some(before) = before {
            // Nothing is sent; this returns when the other producer drops its end.
            let _ = before.recv();
        }
        let batches = maker.source.batches();
        let mut position = from;
        let mut order = (position.epoch, maker.source.order(position.epoch));
        while maker.source.runs_ahead() || position.epoch == epoch {
            if order.0 != position.epoch {
                order = (position.epoch, maker.source.order(position.epoch));
            }
            let Some(batch) = maker.batch(position.epoch, &order.1, position.batch, &stop) else { break };
            drop(made.take());
            let failed = batch.is_err();
            if out.send(batch).is_err() || failed {
                break;
            }
            for _ in 0..PRODUCERS {
                position = position.next(batches);
            }
        }
    }
}
