//! The grammar of CUDA_VISIBLE_DEVICES: numbers, and UUIDs or their beginnings, between commas. CUDA's guide
//! documents that the first invalid entry ends the list. That spaces are ignored, that an ambiguous beginning
//! is invalid, and that a device named twice leaves no device at all is what PyTorch assumes of the driver; the
//! guide does not say.

/// One entry, before it is looked up on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisibleEntry<'a> {
    /// The number of a GPU.
    Number(usize),
    /// `GPU-…`: the beginning of a GPU's UUID, as `nvidia-smi -L` writes it.
    Gpu(&'a str),
    /// `MIG-…`: the beginning of a MIG instance's UUID.
    Mig(&'a str),
}

/// What an entry names on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<T> {
    /// Exactly this device.
    One(T),
    /// No device, or several.
    Invalid,
    /// A device that cannot be told, for example because UUIDs are not known.
    Unknown,
}

/// Why a value does not name the devices that it lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw<'a> {
    /// CUDA stops at this entry.
    Invalid(&'a str),
    /// This entry names a device that is already named, and PyTorch sees none.
    Twice(&'a str),
}

/// The devices that a value leaves visible, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible<'a, T> {
    /// The devices that are known.
    pub devices: Vec<T>,
    /// What is wrong with the value, if something is.
    pub flaw: Option<Flaw<'a>>,
}

/// Reads one entry; `None` if it is invalid on every machine. CUDA also takes a number with text after it,
/// such as `0x`; here that is a mistake.
pub fn visible_entry(text: &str) -> Option<VisibleEntry<'_>> {
    let text = text.trim();
    if text.starts_with("GPU-") {
        return Some(VisibleEntry::Gpu(text));
    }
    if text.starts_with("MIG-") {
        return Some(VisibleEntry::Mig(text));
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten().map(VisibleEntry::Number)
}

/// Reads a value of CUDA_VISIBLE_DEVICES. `look_up` finds what an entry names.
pub fn visible_devices<'a, T: PartialEq>(
    value: &'a str,
    look_up: impl Fn(VisibleEntry<'a>) -> Named<T>,
) -> Visible<'a, T> {
    let mut devices = Vec::new();
    for text in value.split(',').map(str::trim) {
        match visible_entry(text).map_or(Named::Invalid, &look_up) {
            Named::One(device) if devices.contains(&device) => {
                return Visible { devices: Vec::new(), flaw: Some(Flaw::Twice(text)) };
            }
            Named::One(device) => devices.push(device),
            Named::Invalid => return Visible { devices, flaw: Some(Flaw::Invalid(text)) },
            Named::Unknown => {}
        }
    }
    Visible { devices, flaw: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine with three GPUs, of which the last two have similar UUIDs.
    fn read(value: &str) -> (Vec<usize>, Option<Flaw<'_>>) {
        let visible = visible_devices(value, |entry| match entry {
            VisibleEntry::Number(index) if index < 3 => Named::One(index),
            VisibleEntry::Number(_) => Named::Invalid,
            VisibleEntry::Mig(_) => Named::Unknown,
            VisibleEntry::Gpu(prefix) => {
                let uuids = ["GPU-aa", "GPU-bb", "GPU-bc"];
                let named: Vec<usize> = (0..3).filter(|&index| uuids[index].starts_with(prefix)).collect();
                if let [index] = named[..] { Named::One(index) } else { Named::Invalid }
            }
        });
        (visible.devices, visible.flaw)
    }

    #[test]
    fn an_invalid_entry_ends_the_list() {
        assert_eq!(read("2,0"), (vec![2, 0], None));
        assert_eq!(read(" 0, 1 "), (vec![0, 1], None), "spaces are ignored");
        assert_eq!(read("GPU-bc,MIG-1, GPU-a"), (vec![2, 0], None));
        for wrong in
            ["3", "-1", "", "+2", "cuda:0", "0x", "gpu-aa", "GPU-AA", "GPU-b", "99999999999999999999"]
        {
            assert_eq!(read(&format!("1, {wrong},2")), (vec![1], Some(Flaw::Invalid(wrong))));
        }
    }

    #[test]
    fn a_device_named_twice_leaves_none() {
        assert_eq!(read("0,1,0,2"), (vec![], Some(Flaw::Twice("0"))));
        assert_eq!(read("0,GPU-a"), (vec![], Some(Flaw::Twice("GPU-a"))));
        assert_eq!(read("0,-1,0"), (vec![0], Some(Flaw::Invalid("-1"))), "the rest is not read");
    }
}
