//! Pages that list wheels: PyTorch's download site, with one page per variant and package, and mirrors,
//! which may be folders.

use reqwest::Url;

use super::package_tool::{WheelLocation, file_of};
use super::variant::Variant;
use super::wheel::Wheel;
use crate::fetch::{Client, FetchError, Progress, Redacted, fetch_text};

/// PyTorch's site, with a folder per variant and a page per package.
const PYTORCH: &str = "https://download.pytorch.org/whl/";

/// The size limit of a page. The longest had 200 kB in 2026.
const LONGEST: u64 = 16 << 20;

/// Looks up a wheel on PyTorch's page for its package.
pub(super) fn ask_pytorch(
    client: &Client,
    variant: Variant,
    wheel: &Wheel,
    progress: &dyn Progress,
) -> Result<WheelLocation, FetchError> {
    let page = format!("{PYTORCH}{}/{}/", variant.name(), wheel.package);
    let text = fetch_text(client, &page, LONGEST, progress)?;
    let missing = || FetchError::Missing { archive: page.clone(), member: wheel.shown() };
    find(&text, &page, wheel).ok_or_else(missing)
}

/// A wheel on a mirror: by its file name if that is known, otherwise from the listing of the mirror.
pub(super) fn on_mirror(
    client: &Client,
    mirror: &str,
    wheel: &Wheel,
    progress: &dyn Progress,
) -> Result<WheelLocation, FetchError> {
    let base = mirror.trim_end_matches('/');
    if let Some(file) = &wheel.file {
        // Some servers decode a plus in the path as a space, although that applies only to queries.
        let file = if base.contains("://") { file.replace('+', "%2B") } else { file.clone() };
        return Ok(WheelLocation { address: format!("{base}/{file}"), sha256: wheel.sha256.clone() });
    }
    let missing = || FetchError::Missing { archive: Redacted::new(base).to_string(), member: wheel.shown() };
    if base.contains("://") && !base.starts_with("file:") {
        let page = format!("{base}/");
        let text = fetch_text(client, &page, LONGEST, progress)?;
        return find(&text, &page, wheel).ok_or_else(missing);
    }
    let folder = base.strip_prefix("file://").unwrap_or(base);
    let entries = std::fs::read_dir(folder).map_err(|error| FetchError::Refused {
        url: folder.to_owned(),
        why: format!("cannot be read: {error}"),
    })?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let file = { names }.find(|name| wheel.is_named(name)).ok_or_else(missing)?;
    Ok(WheelLocation { address: format!("{base}/{file}"), sha256: None })
}

/// The wheel among the links of a page.
fn find(page: &str, address: &str, wheel: &Wheel) -> Option<WheelLocation> {
    let base = Url::parse(address).ok()?;
    let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let link = { links }.find(|link| wheel.is_named(&file_of(link)))?;
    let (link, fragment) = link.split_once('#').unwrap_or((link, ""));
    let sha256 = fragment.strip_prefix("sha256=").map(str::to_lowercase);
    let mut found = base.join(link).ok()?;
    // A link to the mirror itself needs the mirror's credentials.
    if found.host() == base.host() && found.username().is_empty() {
        // Both fail only for addresses without a host.
        let _ = found.set_username(base.username());
        let _ = found.set_password(base.password());
    }
    Some(WheelLocation { address: found.into(), sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_with_its_hash() {
        let wheel = Wheel::of_pytorch(Variant::Cpu);
        let file = "torch-2.11.0%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl";
        let page = format!(
            "<a href=\"/whl/cpu/x-1.whl#sha256=00\">x</a><a href=\"/whl/cpu/{file}#sha256=AB\">t</a>"
        );
        let located = find(&page, "https://download.example/whl/cpu/torch/", &wheel).unwrap();
        assert_eq!(located.address, format!("https://download.example/whl/cpu/{file}"));
        assert_eq!(located.sha256.as_deref(), Some("ab"));
        assert!(find(&page, "https://h/", &Wheel::of_pytorch(Variant::Cu126)).is_none());
    }

    #[test]
    fn a_mirror_may_be_an_address_or_a_folder() {
        let client = Client::new(crate::fetch::Policy::default()).unwrap();
        let on = |mirror: &str, wheel: &Wheel| on_mirror(&client, mirror, wheel, &crate::fetch::Silent);
        let known = Wheel::of_pytorch(Variant::Cpu);
        let address = on("http://localhost:1/w/", &known).unwrap().address;
        assert!(address.starts_with("http://localhost:1/w/torch-2.11.0%2Bcpu-"), "{address}");
        let folder = tempfile::tempdir().unwrap();
        let name = "nvidia_x-1.0-py3-none-manylinux2014_x86_64.whl";
        std::fs::write(folder.path().join(name), "").unwrap();
        let mirror = folder.path().display().to_string();
        let unseen = Wheel::unseen("nvidia-x", "1.0");
        assert_eq!(on(&mirror, &unseen).unwrap().address, format!("{mirror}/{name}"));
        assert!(on(&mirror, &Wheel::unseen("nvidia-y", "1.0")).is_err());
    }
}
