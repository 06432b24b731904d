//! The modules that a row may name, by the names that YAML files use.

/// Declares an enum of modules with the name of each.
macro_rules! modules {
    ($(#[$doc:meta])* $kind:ident { $($variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $kind { $($variant,)* }

        impl $kind {
            const ALL: &[(&str, Self)] = &[$(($name, Self::$variant)),*];
        }
    };
}

modules! {
    /// Modules whose first argument is the number of output channels.
    ChannelModule {
        Conv = "Conv",
        GhostConv = "GhostConv",
        Bottleneck = "Bottleneck",
        GhostBottleneck = "GhostBottleneck",
        Spp = "SPP",
        Sppf = "SPPF",
        DwConv = "DWConv",
        MixConv2d = "MixConv2d",
        Focus = "Focus",
        CrossConv = "CrossConv",
        BottleneckCsp = "BottleneckCSP",
        C3 = "C3",
        C3Tr = "C3TR",
        C3Spp = "C3SPP",
        C3Ghost = "C3Ghost",
        ConvTranspose2d = "nn.ConvTranspose2d",
        DwConvTranspose2d = "DWConvTranspose2d",
        C3x = "C3x",
    }
}

modules! {
    /// All other modules.
    OtherModule {
        BatchNorm2d = "nn.BatchNorm2d",
        Concat = "Concat",
        Detect = "Detect",
        Contract = "Contract",
        Expand = "Expand",
        Upsample = "nn.Upsample",
        MaxPool2d = "nn.MaxPool2d",
        ZeroPad2d = "nn.ZeroPad2d",
    }
}

impl ChannelModule {
    /// Whether the module itself takes the number of repeats. Others are copied instead.
    pub(super) fn has_repeats(self) -> bool {
        matches!(self, Self::BottleneckCsp | Self::C3 | Self::C3Tr | Self::C3Ghost | Self::C3x)
    }
}

/// A module that a row may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModuleName {
    Channel(ChannelModule),
    Other(OtherModule),
}

impl ModuleName {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let channel = ChannelModule::ALL.iter().find(|(known, _)| *known == name);
        let other = || OtherModule::ALL.iter().find(|(known, _)| *known == name);
        match channel {
            Some((_, module)) => Some(Self::Channel(*module)),
            None => other().map(|(_, module)| Self::Other(*module)),
        }
    }

    /// All names, for a message.
    pub(super) fn list() -> String {
        let channel = ChannelModule::ALL.iter().map(|(name, _)| *name);
        let names: Vec<&str> = channel.chain(OtherModule::ALL.iter().map(|(name, _)| *name)).collect();
        names.join(", ")
    }
}
