//! What a training batch is made of: the images of an epoch in their order, and each of them with its augmentation,
//! or four of them as one (`--quad`). Everything is drawn from the seed, the epoch and the position of an image in it,
//! so it does not matter which thread makes which image.

use std::time::Instant;

use super::Item;
use yolo_plan::batch::QUAD;

use super::LoaderError;
use super::pipeline::{BatchPlan, Made, Scratch, Source, TileBuffers};
use super::settings::LoaderSettings;
use super::store::{ImageStore, Loaded};
use crate::augment::label::{Label, normalize};
use crate::augment::layout::{Layout, LayoutTile, draw_images};
use crate::augment::picture::Picture;
use crate::augment::{mixup, quad};
use crate::balance::balanced;
use crate::image::finish::Finish;
use crate::image::{Image, Part, resize};
use crate::image_weights::{EpochImages, WeightedImages};
use crate::random::{Purpose, Random};
use crate::rect_batches::RectBatches;
use crate::sampler::Sampler;

/// Makes training batches.
pub(super) struct TrainSource {
    pub(super) store: ImageStore,
    pub(super) sampler: Sampler,
    /// The order and shapes of rectangular batches.
    pub(super) rect: Option<RectBatches>,
    /// The cost of each image, if ranks are balanced.
    pub(super) costs: Option<Vec<u64>>,
    /// The draws of the epochs, if images have weights.
    pub(super) weighted: Option<WeightedImages>,
    pub(super) settings: LoaderSettings,
}

impl Source for TrainSource {
    fn runs_ahead(&self) -> bool {
        // The weights of the next epoch follow from the validation before it.
        self.weighted.is_none()
    }

    fn batches(&self) -> usize {
        self.sampler.batches_per_epoch()
    }

    fn order(&self, epoch: u64) -> Vec<usize> {
        let order = self.rect.as_ref().map_or_else(|| self.sampler.order(epoch), |rect| rect.order.clone());
        match &self.costs {
            Some(costs) => {
                let epoch = self.epoch(epoch);
                balanced(&order, &self.sampler, |position| epoch.cost(costs, position))
            }
            None => order,
        }
    }

    fn plan(&self, order: &[usize], batch: usize) -> BatchPlan {
        let square = [self.settings.image_size; 2];
        let [height, width] = self.rect.as_ref().map_or(square, |rect| rect.shapes[batch]);
        let (factor, per_image) = if self.settings.quad { (2, QUAD) } else { (1, 1) };
        let images = self.sampler.batch(order, batch);
        BatchPlan { height: factor * height, width: factor * width, images, per_image }
    }

    fn make(
        &self,
        epoch: u64,
        images: &[usize],
        size: [usize; 2],
        scratch: &mut Scratch,
        planes: &mut [u8],
    ) -> Result<Made, LoaderError> {
        let epoch = self.epoch(epoch);
        if self.settings.quad {
            epoch.four_as_one(images, size, scratch, planes)
        } else {
            epoch.one(images[0], size, scratch, planes)
        }
    }
}

impl TrainSource {
    fn epoch(&self, number: u64) -> Epoch<'_> {
        let images = match &self.weighted {
            Some(weighted) => EpochImages::Drawn(weighted.of_epoch(number)),
            None => EpochImages::All(self.store.samples().len()),
        };
        Epoch { source: self, number, images }
    }

    /// The images of a layout, or the parts that it shows, each in the size that it needs.
    fn images<'a>(
        &'a self,
        layout: &Layout,
        buffers: &'a mut [TileBuffers],
    ) -> Result<Vec<Loaded<'a>>, LoaderError> {
        let image = |(tile, buffers): (&LayoutTile, &'a mut TileBuffers)| {
            let TileBuffers { load, fitted } = buffers;
            let Some(window) = layout.shown(tile) else {
                fitted.clone_from(&Image::default());
                return Ok(Loaded::Buffered(Part::whole(&*fitted)));
            };
            let stored = self.store.size_of(tile.image);
            if stored == tile.size {
                return self.store.get(tile.image, Some(&window), load);
            }
            let needed = resize::source_of(stored, tile.size, &window);
            let loaded = self.store.get(tile.image, Some(&needed), load)?;
            resize::linear_window(loaded.part(), stored, tile.size, &window, fitted);
            Ok(Loaded::Buffered(Part { image: fitted.view(), first: window.first() }))
        };
        layout.tiles.iter().zip(buffers).map(image).collect()
    }
}

/// An epoch, whose images are numbered by their positions in it.
struct Epoch<'a> {
    source: &'a TrainSource,
    number: u64,
    images: EpochImages,
}

impl Epoch<'_> {
    /// Makes the image at a position.
    fn one(
        &self,
        position: usize,
        size: [usize; 2],
        scratch: &mut Scratch,
        planes: &mut [u8],
    ) -> Result<Made, LoaderError> {
        let TrainSource { store, settings: LoaderSettings { augment, .. }, .. } = self.source;
        let samples = store.samples();
        let index = self.images.at(position);
        let (mut random, is_mosaic) = self.random(position);
        let first = if is_mosaic {
            self.mosaic(position, &mut random)
        } else {
            Layout::single(index, &samples[index], store.size_of(index), size, augment, &mut random)
        };
        let second = (is_mosaic && random.chance(augment.mixup)).then(|| {
            let other = random.below(self.images.count());
            let layout = self.mosaic(other, &mut random);
            (layout, mixup::draw_share(&mut random))
        });
        let finish = augment.draw_finish(&mut random);

        let Scratch {
            tiles: [tiles, other_tiles],
            canvases: [canvas, other_canvas],
            picture: buffers,
            decoding,
            ..
        } = scratch;
        let began = Instant::now();
        let images = self.source.images(&first, tiles)?;
        let other_images =
            second.as_ref().map_or(Ok(Vec::new()), |(layout, _)| self.source.images(layout, other_tiles))?;
        *decoding += began.elapsed();
        let view = first.view(images.iter().map(Loaded::part), canvas);
        let mixed = second.as_ref().map(|(layout, share)| {
            (layout.view(other_images.iter().map(Loaded::part), other_canvas), *share)
        });
        let picture = Picture { view, mixed, finish };
        picture.write(size, buffers, planes);

        let other_labels = second.into_iter().flat_map(|(layout, _)| layout.labels);
        let labels: Vec<Label> = first.labels.into_iter().chain(other_labels).collect();
        let Finish { up_down, left_right, .. } = picture.finish;
        let targets = normalize(&labels, size, up_down, left_right).collect();
        let native = [samples[index].height, samples[index].width];
        Ok((Item { sample: index, native, ratio: [1.0; 2], pad: [0.0; 2] }, targets))
    }

    /// Makes an image of `size`, height and width, of the four at these positions, which have half of it.
    fn four_as_one(
        &self,
        positions: &[usize],
        size: [usize; 2],
        scratch: &mut Scratch,
        planes: &mut [u8],
    ) -> Result<Made, LoaderError> {
        let half = size.map(|side| side / 2);
        let mut quadrant = std::mem::take(&mut scratch.quadrant);
        quadrant.resize(3 * half[0] * half[1], 0);
        let (item, mut targets) = self.one(positions[0], half, scratch, &mut quadrant)?;
        match quad::draw(self.source.settings.seed, self.number, positions[0]) {
            // The other three are not shown.
            None => quad::enlarge(&quadrant, half, planes),
            Some(places) => {
                quad::place(&quadrant, half, places[0], planes);
                targets = targets.into_iter().map(|target| quad::placed(target, places[0])).collect();
                for (&position, place) in positions.iter().zip(places).skip(1) {
                    let (_, others) = self.one(position, half, scratch, &mut quadrant)?;
                    quad::place(&quadrant, half, place, planes);
                    targets.extend(others.into_iter().map(|target| quad::placed(target, place)));
                }
            }
        }
        scratch.quadrant = quadrant;
        Ok((item, targets))
    }

    /// The random numbers of the image at a position, and whether it becomes a mosaic.
    fn random(&self, position: usize) -> (Random, bool) {
        let LoaderSettings { seed, rect, augment, .. } = &self.source.settings;
        let mut random = Random::keyed(*seed, self.number, Purpose::Augment, position as u64);
        let is_mosaic = !rect && random.chance(augment.mosaic);
        (random, is_mosaic)
    }

    /// The cost of making the image at a position: that of a mosaic is the sum of its four images.
    fn cost(&self, costs: &[u64], position: usize) -> u64 {
        let (mut random, is_mosaic) = self.random(position);
        if !is_mosaic {
            return costs[self.images.at(position)];
        }
        let size = self.source.settings.image_size;
        let (_, images) = draw_images((position, &self.images), size, &mut random);
        images.into_iter().map(|image| costs[image]).sum()
    }

    /// Draws a mosaic of the image at a position and three others.
    fn mosaic(&self, position: usize, random: &mut Random) -> Layout {
        let TrainSource { store, settings: LoaderSettings { image_size, augment, .. }, .. } = self.source;
        let size_of = |image| store.size_of(image);
        Layout::mosaic((position, &self.images), store.samples(), size_of, *image_size, augment, random)
    }
}
