//! Builds the module of one row: its arguments, its input and output channels, and whether a
//! repeat count goes into the module or makes copies of it (spec §1 and §2).

mod block;
mod convolution;
mod name;
mod other;
mod rules;

use self::name::{ChannelModule, ModuleName, OtherModule};
use super::Module;
use super::args::{MAX_CHANNELS, Row, whole};
use super::scope::Scope;
use crate::error::PlanError;
use crate::yaml::show;

/// What a row builds.
pub(crate) struct Built {
    pub(crate) module: Module,
    pub(crate) copies: usize,
    pub(crate) out_channels: usize,
}

/// Builds the module `name` with `n` repeats. `sources` has the channels of each source of the row.
pub(crate) fn build_module(
    name: &str,
    n: usize,
    row: Row<'_>,
    sources: &[usize],
    scope: &Scope,
) -> Result<Built, PlanError> {
    let name = ModuleName::parse(name).ok_or_else(|| {
        row.error(format!("there is no module {name} for detectors"))
            .with_hint(format!("the modules of a detection yaml are {}", ModuleName::list()))
    })?;
    let takes_several = matches!(name, ModuleName::Other(OtherModule::Concat | OtherModule::Detect));
    let c1 = match *sources {
        [c1] => c1,
        [c1, ..] if takes_several => c1,
        _ => {
            return Err(row.error(format!(
                "it has {} sources, but only Concat and Detect take more than one",
                sources.len()
            )));
        }
    };
    match name {
        ModuleName::Channel(name) => build_channel_module(name, n, row, c1, scope),
        ModuleName::Other(name) => {
            let (module, out_channels) = other_module(name, &row, c1, sources, scope)?;
            if n > 1 && out_channels != c1 {
                return Err(row.error(format!(
                    "it changes the number of channels, so it cannot be repeated {n} times"
                )));
            }
            Ok(Built { module, copies: n, out_channels })
        }
    }
}

/// Takes the number of output channels from the arguments, and builds the module with the rest.
fn build_channel_module(
    name: ChannelModule,
    n: usize,
    mut row: Row<'_>,
    c1: usize,
    scope: &Scope,
) -> Result<Built, PlanError> {
    if row.args.is_empty() {
        return Err(row.error("the number of output channels (the first argument) is missing"));
    }
    let channels = row.args.remove(0);
    let c2 = whole(&channels)
        .filter(|c2| (1..=MAX_CHANNELS).contains(c2))
        .ok_or_else(|| row.error(format!("{} is not a number of output channels", show(&channels))))?;
    let c2 = scope.scale_channels(c2);
    if c2 > MAX_CHANNELS {
        return Err(row.error(format!("{c2} output channels are more than the limit of {MAX_CHANNELS}")));
    }
    let (repeats, copies) = if name.has_repeats() { (n, 1) } else { (1, n) };
    let module = channel_module(name, c1, c2, repeats, &row)?;
    if copies > 1 && c1 != c2 {
        return Err(row.error(format!(
            "{copies} copies in sequence need as many input as output channels, not {c1} and {c2}"
        )));
    }
    Ok(Built { module, copies, out_channels: c2 })
}

fn channel_module(
    name: ChannelModule,
    c1: usize,
    c2: usize,
    n: usize,
    row: &Row<'_>,
) -> Result<Module, PlanError> {
    match name {
        ChannelModule::Conv => convolution::conv(row, c1, c2),
        ChannelModule::DwConv => convolution::dw_conv(row, c1, c2),
        ChannelModule::Focus => convolution::focus(row, c1, c2),
        ChannelModule::GhostConv => convolution::ghost_conv(row, c1, c2),
        ChannelModule::CrossConv => convolution::cross_conv(row, c1, c2),
        ChannelModule::MixConv2d => convolution::mix_conv(row, c1, c2),
        ChannelModule::ConvTranspose2d => convolution::conv_transpose(row, c1, c2),
        ChannelModule::DwConvTranspose2d => convolution::dw_conv_transpose(row, c1, c2),
        ChannelModule::Bottleneck => block::bottleneck(row, c1, c2),
        ChannelModule::GhostBottleneck => block::ghost_bottleneck(row, c1, c2),
        ChannelModule::Spp => block::spp(row, c1, c2),
        ChannelModule::Sppf => block::sppf(row, c1, c2),
        ChannelModule::BottleneckCsp => {
            Ok(Module::BottleneckCsp { csp: block::csp(row, c1, c2, n, 0)?, joined_act: row.joined_act })
        }
        ChannelModule::C3 => Ok(Module::C3(block::csp(row, c1, c2, n, 0)?)),
        ChannelModule::C3x => Ok(Module::C3x(block::csp(row, c1, c2, n, 0)?)),
        ChannelModule::C3Tr => block::c3_tr(row, c1, c2, n),
        ChannelModule::C3Spp => block::c3_spp(row, c1, c2),
        ChannelModule::C3Ghost => block::c3_ghost(row, c1, c2, n),
    }
}

/// A module and its output channels.
fn other_module(
    name: OtherModule,
    row: &Row<'_>,
    c1: usize,
    sources: &[usize],
    scope: &Scope,
) -> Result<(Module, usize), PlanError> {
    match name {
        OtherModule::BatchNorm2d => Ok((Module::BatchNorm2d { c: c1 }, c1)),
        OtherModule::Concat => other::concat(row, sources),
        OtherModule::Detect => other::detect(row, sources, scope),
        OtherModule::Contract => other::contract(row, c1),
        OtherModule::Expand => other::expand(row, c1),
        OtherModule::Upsample => Ok((other::upsample(row)?, c1)),
        OtherModule::MaxPool2d => Ok((other::max_pool(row)?, c1)),
        OtherModule::ZeroPad2d => Ok((other::zero_pad(row)?, c1)),
    }
}
